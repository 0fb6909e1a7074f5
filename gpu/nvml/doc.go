// Package nvml is the hand of package gpu: it finds the NVIDIA cards of this machine and
// says what they do, over NVIDIA's management library (NVML), which comes with the
// driver.
//
// The library is loaded when it is asked for; nothing of it is needed to build or to
// start Roost. A machine without it has no GPUs, which is no fault. The binding takes
// cgo: built without, Open says that there is no NVML, and the rest is the same.
//
// Two habits of NVML shape the code. What a card does not know it answers with
// NOT_SUPPORTED, which here means unknown and never an error. And a function that the
// installed driver is too old for is not there at all: calling it ends the process, so
// each is looked up first.
package nvml
