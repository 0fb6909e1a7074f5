// Package nvml is the adapter of package gpu: it finds the NVIDIA cards of this machine
// and measures them. It uses NVIDIA's management library (NVML), which comes with the
// driver.
//
// The library is loaded when it is first used; Roost needs no part of it to build or to
// start. A machine without it has no GPUs, which is no error. The binding needs cgo:
// built without it, Open returns that there is no NVML, and nothing else changes.
//
// Two properties of NVML shape the code. A card answers NOT_SUPPORTED for what it does
// not know, which here means unknown and never an error. And a function that the
// installed driver is too old for does not exist: calling it ends the process, so each is
// looked up first.
package nvml
