// Package gpudriver gives tasks in container images the libraries and programs of the
// machine's GPU driver. They have to fit the driver in the kernel, so no image can have
// them.
//
// A program in an image has them below /usr/local/nvidia, as with NVIDIA's own tools.
package gpudriver
