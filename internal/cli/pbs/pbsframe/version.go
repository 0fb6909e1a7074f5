package pbsframe

import "github.com/roost-batch/roost"

// Version is what clients get as the version of PBS, in its old spelling, and that of
// Roost. Clients tell by it what they may use.
func Version() string { return "PBSPro_23.06.06 (" + RoostVersion() + ")" }

// RoostVersion is that of Roost, with its name before it.
func RoostVersion() string { return "roost-" + roost.Version }
