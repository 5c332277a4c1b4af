"""VolumeBinding, VolumeZone, NodeVolumeLimits and VolumeRestrictions: the plugins that look at volumes."""
