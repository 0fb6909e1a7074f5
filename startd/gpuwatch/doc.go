// Package gpuwatch watches the GPUs that a startd hands out: which devices there are,
// how they are, and what the attempts on them use.
//
// A Monitor asks NVML (package gpu/nvml), or in tests a made-up list of cards. Two
// goroutines follow the devices: one waits for errors that the driver reports, the other
// measures each device and adds up what the processes of each attempt use. A device whose
// health changes has the startd's loop called; an attempt that uses what it was not given
// has its own function called, once.
//
// Claims ask the Monitor for the variables by which programs find their own devices, and
// for the device files that a task may open.
package gpuwatch
