// Package gpu is what Roost knows about graphics cards and about the resource units that
// they are part of: what a device is, when one is too sick to be used, how a machine is
// cut into resource units, and which unit and which bytes of which cards a task gets.
//
// It is pure: a machine comes in as a list of Device, found by package gpu/nvml or
// written down by a test, and what comes out is a plan. The execute node and the
// negotiator use the same code, so that a placement that the negotiator thinks of is one
// that the node can make.
//
// A device is a whole card or a MIG instance, a slice of a card that the hardware keeps
// apart from its siblings (NVIDIA Multi-Instance GPU User Guide). A card that is cut into
// instances is not a device itself: its instances are. Memory of a device is handed out
// by the byte (HRM, section 3.2), so that several tasks may share one; the sum of the
// shares never exceeds what the device has.
package gpu
