"""VolumeBinding, VolumeZone, NodeVolumeLimits and VolumeRestrictions."""
