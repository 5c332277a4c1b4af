"""Which plugins of a scheduler profile run, in which order and with which weights."""

import pytest

from reberth.forecast.state.plugin_args import NodeResourcesFitArgs, PodTopologySpreadArgs
from reberth.forecast.state.profile import KubeScheduler, Profile, default_scheduler, parse_scheduler
from reberth.values.errors import SettingsError

RATIO = "{type: RequestedToCapacityRatio}"
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def read(text: str) -> KubeScheduler:
    return parse_scheduler((HEAD + text).encode(), version=(1, 36))


def only(text: str) -> Profile:
    (profile,) = read(text).profiles.values()
    return profile


def test_the_default_scheduler() -> None:
    profile = default_scheduler((1, 36)).profiles["default-scheduler"]
    assert dict(profile.scores) == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert profile.filters[:4] == ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity")
    assert profile.filters[-1] == "NodeDeclaredFeatures"
    assert profile.percentage == 0


def test_a_filter_is_unknown_before_its_version() -> None:
    assert "NodeDeclaredFeatures" not in default_scheduler((1, 35)).profiles["default-scheduler"].filters


def test_an_empty_configuration_is_the_default_one() -> None:
    assert read("") == default_scheduler((1, 36))


def test_plugins_are_switched_off_everywhere_or_at_one_point() -> None:
    profile = only("""
profiles:
- plugins:
    multiPoint: {disabled: [{name: ImageLocality}, {name: NodePorts}]}
    score: {disabled: [{name: PodTopologySpread}]}
""")
    scores = dict(profile.scores)
    assert "ImageLocality" not in scores
    assert "PodTopologySpread" not in scores
    assert "NodePorts" not in profile.filters
    assert "PodTopologySpread" in profile.filters


def test_a_weight_at_score_takes_precedence_over_multi_point() -> None:
    profile = only("""
profiles:
- plugins:
    multiPoint: {enabled: [{name: NodeAffinity, weight: 7}, {name: TaintToleration}]}
    score: {enabled: [{name: InterPodAffinity, weight: 9}, {name: ImageLocality, weight: 0}]}
""")
    scores = dict(profile.scores)
    assert scores["NodeAffinity"] == 7
    assert scores["TaintToleration"] == 1
    assert scores["InterPodAffinity"] == 9
    assert scores["ImageLocality"] == 1
    assert [name for name, _ in profile.scores][:2] == ["InterPodAffinity", "ImageLocality"]


def test_star_disables_all_plugins_of_a_point_but_the_enabled_ones() -> None:
    profile = only("""
profiles:
- plugins:
    score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit, weight: 4}]}
    multiPoint: {disabled: [{name: "*"}], enabled: [{name: NodeName}]}
""")
    assert profile.scores == (("NodeResourcesFit", 4),)
    assert profile.filters == ("NodeName",)
    assert profile.pre_filters == ()


def test_arguments_and_percentages_are_read() -> None:
    scheduler = read("""
percentageOfNodesToScore: 30
profiles:
- schedulerName: tight
  percentageOfNodesToScore: 70
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 2}]}
- schedulerName: loose
  pluginConfig:
  - name: PodTopologySpread
    args: {defaultingType: List}
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 10}
""")
    tight, loose = scheduler.profiles["tight"], scheduler.profiles["loose"]
    fit, spread = tight.arguments["NodeResourcesFit"], loose.arguments["PodTopologySpread"]
    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.scoring_strategy.type == "MostAllocated"
    assert isinstance(spread, PodTopologySpreadArgs)
    assert spread.defaulting_type == "List"
    assert (tight.percentage, loose.percentage) == (70, 30)


def test_resources_that_an_extender_manages_are_ignored() -> None:
    scheduler = read("""
extenders:
- urlPrefix: http://127.0.0.1:1
  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}, {name: example.com/nic}]
""")
    fit = scheduler.profiles["default-scheduler"].arguments["NodeResourcesFit"]
    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.ignored_resources == ("example.com/gpu",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "profiles: [{plugins: {score: {enabled: [{name: ImageLocalty}]}}}]",
            "profiles[0].plugins.score.enabled[0].name",
        ),
        ("profiles: [{pluginConfig: [{name: Coscheduling}]}]", "profiles[0].pluginConfig[0].name"),
        ("profiles: []", "profiles"),
        ("profiles: [{}, {}]", "two profiles have the same schedulerName"),
        ("percentageOfNodesToScore: 101", "percentageOfNodesToScore"),
        ("extenders: [{urlPrefix: http://x, prioritizeVerb: p}]", "must have a positive weight"),
        ("profile: []", "profile"),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Least}}}]}]",
            "profiles[0].pluginConfig[0].args.scoringStrategy.type",
        ),
        (
            f"profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {{scoringStrategy: {RATIO}}}}}]}}]",
            "requestedToCapacityRatio must be set if, and only if, type is RequestedToCapacityRatio",
        ),
        (
            "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]}]",
            "hardPodAffinityWeight",
        ),
        (
            "profiles: [{pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]}]",
            "has two entries for one plugin",
        ),
    ],
)
def test_a_wrong_configuration_names_its_field(text: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        read(text)
    assert complaint in str(refusal.value)


def test_another_kind_of_file_is_refused() -> None:
    with pytest.raises(SettingsError, match="kind"):
        parse_scheduler(b"apiVersion: v1\nkind: Pod\n", version=(1, 36))


SHAPES = [
    ("[{utilization: 50, score: 1}, {utilization: 50, score: 2}]", "utilization must increase"),
    ("[]", "shape"),
    ("[{utilization: 0, score: 11}]", "score"),
]


@pytest.mark.parametrize(("shape", "complaint"), SHAPES)
def test_a_shape_rises_within_its_bounds(shape: str, complaint: str) -> None:
    kind = "RequestedToCapacityRatio"
    strategy = f"scoringStrategy: {{type: {kind}, requestedToCapacityRatio: {{shape: {shape}}}}}"
    with pytest.raises(SettingsError, match=complaint):
        read(f"profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {{{strategy}}}}}]}}]")


SPREADING = "maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule"
GREATER = "{matchExpressions: [{key: k, operator: Gt, values: [x]}]}"
PREFERRED = f"preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 1, preference: {GREATER}}}]"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("PodTopologySpread", f"defaultConstraints: [{{{SPREADING}}}]"),
        (
            "PodTopologySpread",
            f"defaultingType: List, defaultConstraints: [{{{SPREADING}, labelSelector: {{}}}}]",
        ),
        ("NodeResourcesBalancedAllocation", "resources: [{name: cpu, weight: 2}]"),
        ("NodeAffinity", f"addedAffinity: {{{PREFERRED}}}"),
    ],
)
def test_arguments_that_contradict_themselves_are_refused(name: str, arguments: str) -> None:
    with pytest.raises(SettingsError, match="pluginConfig"):
        read(f"profiles: [{{pluginConfig: [{{name: {name}, args: {{{arguments}}}}}]}}]")
