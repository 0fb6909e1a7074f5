//go:build cgo

package fakelib

// cgo reports whether this build can load a library.
const cgo = true
