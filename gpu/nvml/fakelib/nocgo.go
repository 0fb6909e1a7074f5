//go:build !cgo

package fakelib

// cgo says whether this build can load a library.
const cgo = false
