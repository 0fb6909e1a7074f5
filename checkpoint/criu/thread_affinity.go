package criu

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// CRIU does not restore the CPU affinity of threads, so a program that pinned threads
// would silently lose it. So the affinity is recorded during the dump, for threads that
// differ from the first process, and set again where those CPUs may be used.

// threadAffinity is a thread with a CPU affinity of its own.
type threadAffinity struct {
	TID  int // inside the PID namespace
	CPUs []int
}

// threadAffinities lists the threads in a process tree with an affinity of their own.
func threadAffinities(pids []int) []threadAffinity {
	var first unix.CPUSet
	if len(pids) == 0 || unix.SchedGetaffinity(pids[0], &first) != nil {
		return nil
	}
	var list []threadAffinity
	for _, pid := range pids {
		for _, tid := range threadIDs(pid) {
			var own unix.CPUSet
			if unix.SchedGetaffinity(tid, &own) == nil && own != first {
				list = append(list, threadAffinity{
					innerPID(statusFields(procPath(pid, "task/"+strconv.Itoa(tid)+"/status"))), cpuNumbers(&own),
				})
			}
		}
	}
	return list
}

func cpuNumbers(set *unix.CPUSet) []int {
	var list []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list
}

// restoreAffinities applies the recorded affinities. If the CPUs do not exist or are not
// available, the thread may use the same CPUs as the others.
func restoreAffinities(pids []int, list []threadAffinity) {
	if len(list) == 0 {
		return
	}
	wanted := map[int][]int{}
	for _, p := range list {
		wanted[p.TID] = p.CPUs
	}
	for _, pid := range pids {
		for _, tid := range threadIDs(pid) {
			cpus, ok := wanted[innerPID(statusFields(procPath(pid, "task/"+strconv.Itoa(tid)+"/status")))]
			if !ok {
				continue
			}
			var have, want unix.CPUSet
			unix.SchedGetaffinity(tid, &have)
			allowed := len(cpus) > 0
			for _, cpu := range cpus {
				want.Set(cpu)
				allowed = allowed && have.IsSet(cpu)
			}
			if allowed {
				unix.SchedSetaffinity(tid, &want)
			}
		}
	}
}
