package criu

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// CRIU does not keep which CPUs a thread may run on: whoever pinned threads would lose that without a word. So it is noted while they stand
// still, for those threads that differ from the first process, and asked for again where those CPUs may be used.

// pin is a thread with CPUs of its own choice.
type pin struct {
	TID  int // inside
	CPUs []int
}

// pins lists them, of all processes in a tree.
func pins(pids []int) []pin {
	var first unix.CPUSet
	if len(pids) == 0 || unix.SchedGetaffinity(pids[0], &first) != nil {
		return nil
	}
	var list []pin
	for _, pid := range pids {
		for _, tid := range threads(pid) {
			var own unix.CPUSet
			if unix.SchedGetaffinity(tid, &own) == nil && own != first {
				list = append(list, pin{inner(status(proc(pid, "task/"+strconv.Itoa(tid)+"/status"))), members(&own)})
			}
		}
	}
	return list
}

func members(set *unix.CPUSet) []int {
	var list []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list
}

// repin applies what pins noted. CPUs that are not there, or not ours, leave a thread as free as the others.
func repin(pids []int, list []pin) {
	if len(list) == 0 {
		return
	}
	wanted := map[int][]int{}
	for _, p := range list {
		wanted[p.TID] = p.CPUs
	}
	for _, pid := range pids {
		for _, tid := range threads(pid) {
			cpus, ok := wanted[inner(status(proc(pid, "task/"+strconv.Itoa(tid)+"/status")))]
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
