package roost

import "fmt"

// SignalNumber returns the number of a signal on Linux: "USR2", "SIGUSR2". Signals that a
// program cannot catch, and unknown names, are errors of kind Invalid.
func SignalNumber(name string) (int32, error) {
	short := name
	if len(short) > 3 && short[:3] == "SIG" {
		short = short[3:]
	}
	for _, s := range [...]struct {
		name   string
		number int32
	}{
		{"HUP", 1}, {"INT", 2}, {"QUIT", 3}, {"ABRT", 6}, {"USR1", 10}, {"USR2", 12}, {"ALRM", 14}, {"TERM", 15},
		{"CONT", 18}, {"TSTP", 20},
		{"TTIN", 21}, {"TTOU", 22}, {"URG", 23}, {"XCPU", 24}, {"XFSZ", 25}, {"VTALRM", 26}, {"PROF", 27},
		{"WINCH", 28}, {"IO", 29}, {"PWR", 30},
	} {
		if s.name == short {
			return s.number, nil
		}
	}
	if short == "KILL" || short == "STOP" {
		return 0, fmt.Errorf("signal %s: %w: no program can catch it", name, Invalid)
	}
	return 0, fmt.Errorf("signal %q: %w: there is none of that name; a program is mostly told with USR1, USR2 or TERM",
		name, Invalid)
}
