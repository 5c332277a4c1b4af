"""Draw disks named in a pod or a volume, and the CSI drivers that replaced their plugins."""

from tests.support.forecast.cases.dice import Dice, Object

TAKEN_OVER = {
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
}
TAKEN_OVER_ON_NODE = "storage.alpha.kubernetes.io/migrated-plugins"


def inline_disk(dice: Dice) -> Object:
    """A disk that the pod names itself."""
    name, read_only = dice.choice(["d1", "d2"]), dice.chance(0.4)
    return dice.choice(
        [
            {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}},
            {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}},
            {
                "iscsi": {
                    "targetPortal": "10.0.0.1:3260",
                    "iqn": f"iqn.2001-04.com.example:{name}",
                    "lun": dice.randint(0, 1),
                    "readOnly": read_only,
                }
            },
            {
                "rbd": {
                    "monitors": dice.several(["10.0.0.2:6789", "10.0.0.3:6789"], 1, 2),
                    "image": name,
                    "pool": "pool",
                    "readOnly": read_only,
                }
            },
        ]
    )


def volume_source(dice: Dice, name: str, drivers: list[str]) -> Object:
    """Where the content of a volume is."""
    if dice.often("volumes of the old kind", 0.25):
        return dice.choice(
            [{"gcePersistentDisk": {"pdName": name}}, {"awsElasticBlockStore": {"volumeID": name}}]
        )
    return {"csi": {"driver": dice.choice(drivers), "volumeHandle": name}}
