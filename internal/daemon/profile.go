package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// ProfileDir is the environment variable with a directory for CPU profiles. Every daemon
// writes a profile of its whole life there, for go tool pprof.
const ProfileDir = "ROOST_PROFILE"

// StartProfile begins a profile if the variable is set, and returns a function that ends
// it.
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
