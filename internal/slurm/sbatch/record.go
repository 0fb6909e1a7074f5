package sbatch

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// killWait is how many seconds a job has between TERM and KILL: KillWait of Slurm.
const killWait = 30

// setRecord stores in the ad what the job asked for in Slurm's words. squeue and scontrol
// list it; the schedd reads how its files are opened, and its signal.
func (s *submission) setRecord(ad *classad.Ad) error {
	record := classad.New()
	for _, o := range []struct{ option, name string }{{"comment", "Comment"}, {"constraint", RecordFeatures},
		{"exclude", RecordExcluded}, {"nodelist", RecordNodes}, {"licenses", "Licenses"}} {
		if value := s.value(o.option); value != "" && !strings.Contains(value, "\x00") {
			record.SetString(o.name, value)
		}
	}
	if err := s.setPlaces(ad, record); err != nil {
		return err
	}
	record.SetInt("NumTasks", int64(s.layout.tasks))
	record.SetInt("CPUsPerTask", int64(s.layout.cpus))
	if s.layout.perNode > 0 {
		record.SetInt("NtasksPerNode", int64(s.layout.perNode))
	}
	if n := s.niceValue; n != 0 {
		record.SetInt("Nice", int64(n))
	}
	if s.file != "" && s.fromFile {
		record.SetString("Command", s.absolute(s.caller.Dir, s.operand))
	}
	switch mode := strings.ToLower(s.value("open-mode")); {
	case mode == "":
	case strings.HasPrefix("append", mode):
		record.SetString("OpenMode", "append")
	case strings.HasPrefix("truncate", mode):
		record.SetString("OpenMode", "truncate")
	default:
		return &Failure{"sbatch: error: Invalid --open-mode specification\n", UsageStatus}
	}
	if text := s.value("signal"); text != "" {
		signal, ok := ParseSignal(text)
		if !ok {
			return invalid("signal")
		}
		record.SetInt("Signal", int64(signal.Number))
		record.SetInt("SignalBefore", int64(signal.Before))
		if signal.ScriptOnly {
			record.SetBool("SignalScript", true)
		}
	}
	ad.SetAd(roost.AttrSlurm, record)
	return nil
}

// EndSignal is what --signal asks for.
type EndSignal struct {
	Number     int
	Before     int // seconds before the end of the time limit
	ScriptOnly bool
}

// defaultBefore is how many seconds before the end a signal is sent.
const defaultBefore = 60

// ParseSignal reads the value of --signal: [R][B:]SIGNAL[@SECONDS].
func ParseSignal(text string) (signal EndSignal, ok bool) {
	flags, rest, hasFlags := strings.Cut(text, ":")
	if !hasFlags {
		flags, rest = "", text
	}
	for _, f := range strings.ToUpper(flags) {
		switch f {
		case 'B':
			signal.ScriptOnly = true
		case 'R': // for the time before a reservation
		default:
			return signal, false
		}
	}
	name, before, isTimed := strings.Cut(rest, "@")
	signal.Before = defaultBefore
	if isTimed {
		n, err := strconv.ParseUint(before, 10, 16)
		if err != nil {
			return signal, false
		}
		signal.Before = int(n)
	}
	signal.Number, ok = ParseSignalName(name)
	return signal, ok
}

// maxSignal is the last signal of Linux.
const maxSignal = 64

// ParseSignalName reads a signal: a number, or a name with or without SIG.
func ParseSignalName(text string) (number int, ok bool) {
	if n, err := strconv.ParseUint(text, 10, 8); err == nil {
		return int(n), n >= 1 && n <= maxSignal
	}
	number, ok = signals()[strings.TrimPrefix(strings.ToUpper(text), "SIG")]
	return number, ok
}

// signals are those of Linux by their names.
func signals() map[string]int {
	names := map[string]int{"CLD": 17, "POLL": 29, "IOT": 6}
	for i, name := range strings.Fields("HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM " +
		"STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS") {
		names[name] = i + 1
	}
	return names
}
