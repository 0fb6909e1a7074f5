// Package gpu models GPUs and the resource units (RUs) that they belong to. It knows what
// a device is, when one is unhealthy, how a machine is cut into resource units, and which
// unit and which bytes of which devices a task gets.
//
// The package is pure: its input is a list of Device, from package gpu/nvml or from a
// test, and its output is a plan. The startd and the negotiator use the same code, so
// that a placement that the negotiator computes is one that the startd can make.
//
// A device is a whole card or a MIG instance, a part of a card that the hardware isolates
// from the others (NVIDIA Multi-Instance GPU User Guide). A card with instances is not a
// device itself: its instances are. Memory of a device is allocated by the byte (HRM,
// section 3.2), so that several tasks may share one; the sum of the shares never exceeds
// the device's memory.
package gpu
