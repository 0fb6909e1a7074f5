package main

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// forkLoopRuns is how many programs each core runs in one measurement.
const forkLoopRuns = 500

// forkLoopTarget is the share of the loops' rate that an array is to reach.
const forkLoopTarget = 0.5

// forkLoopRate returns how many runs of /bin/true end a second in fork and exec loops on
// all cores. No batch system can start more.
func forkLoopRate() (float64, error) {
	var loops errgroup.Group
	cores := runtime.NumCPU()
	began := time.Now()
	for range cores {
		loops.Go(func() error {
			for range forkLoopRuns {
				pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{})
				if err != nil {
					return err
				}
				for err = syscall.EINTR; err == syscall.EINTR; {
					_, err = syscall.Wait4(pid, nil, 0, nil)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := loops.Wait(); err != nil {
		return 0, err
	}
	return float64(cores*forkLoopRuns) / time.Since(began).Seconds(), nil
}
