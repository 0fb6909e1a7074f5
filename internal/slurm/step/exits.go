package step

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MachineExits are the tasks of one machine that ended in the same way.
type MachineExits struct {
	Machine string
	Exit    TaskExit
	Tasks   []int
}

// AddExit adds a task's end to those that are to be reported. Ends without an error are
// not.
func AddExit(list []MachineExits, machine string, task int, e TaskExit) []MachineExits {
	if e == (TaskExit{}) {
		return list
	}
	for i, x := range list {
		if x.Machine == machine && x.Exit == e {
			list[i].Tasks = append(list[i].Tasks, task)
			return list
		}
	}
	return append(list, MachineExits{machine, e, []int{task}})
}

// String is the line in which srun reports them, without its own name.
func (x MachineExits) String() string {
	slices.Sort(x.Tasks)
	return fmt.Sprintf("error: %s: %s: %s", x.Machine, taskWords(x.Tasks), x.Exit)
}

// String says how a task ended, in srun's words.
func (e TaskExit) String() string {
	switch {
	case e.Problem != "":
		return e.Problem
	case e.Signal != 0:
		text := signalText(e.Signal)
		if e.Core {
			text += " (core dumped)"
		}
		return text
	}
	return "Exited with exit code " + strconv.Itoa(e.Code)
}

// signalTexts are what strsignal(3) of glibc says, by number.
func signalTexts() []string {
	return []string{1: "Hangup", 2: "Interrupt", 3: "Quit", 4: "Illegal instruction", 5: "Trace/breakpoint trap",
		6: "Aborted", 7: "Bus error", 8: "Floating point exception", 9: "Killed", 10: "User defined signal 1",
		11: "Segmentation fault", 12: "User defined signal 2", 13: "Broken pipe", 14: "Alarm clock", 15: "Terminated",
		16: "Stack fault", 24: "CPU time limit exceeded", 25: "File size limit exceeded", 31: "Bad system call"}
}

func signalText(n int) string {
	if texts := signalTexts(); n > 0 && n < len(texts) && texts[n] != "" {
		return texts[n]
	}
	return "Signal " + strconv.Itoa(n)
}

func taskWords(tasks []int) string {
	if len(tasks) == 1 {
		return "task " + strconv.Itoa(tasks[0])
	}
	return "tasks " + Ranges(tasks)
}

// Ranges writes sorted numbers as in "0-2,5".
func Ranges(sorted []int) string {
	var words []string
	for i := 0; i < len(sorted); {
		n := 1
		for i+n < len(sorted) && sorted[i+n] == sorted[i]+n {
			n++
		}
		word := strconv.Itoa(sorted[i])
		if n > 1 {
			word += "-" + strconv.Itoa(sorted[i+n-1])
		}
		words = append(words, word)
		i += n
	}
	return strings.Join(words, ",")
}
