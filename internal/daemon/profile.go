package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// ProfileDir is the environment variable with a directory into which every daemon writes
// a CPU profile of its whole life, for go tool pprof.
const ProfileDir = "ROOST_PROFILE"

// StartProfile begins a profile if one is asked for, and returns what ends it.
func StartProfile(name string) (end func()) {
	dir := os.Getenv(ProfileDir)
	if dir == "" {
		return func() {}
	}
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s.%d.prof", name, os.Getpid())))
	if err != nil {
		return func() {}
	}
	if pprof.StartCPUProfile(f) != nil {
		f.Close()
		return func() {}
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}
}
