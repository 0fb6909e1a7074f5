package pbsframe

import "github.com/roost-batch/roost"

// Version is the version that clients are told: that of OpenPBS which the commands are
// like, in its old spelling, by which clients know what they can say, and that of Roost.
func Version() string { return "PBSPro_23.06.06 (" + RoostVersion() + ")" }

// RoostVersion is that of Roost, with its name before it.
func RoostVersion() string { return "roost-" + roost.Version }
