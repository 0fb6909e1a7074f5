package idle

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// BootTime is a reading of CLOCK_BOOTTIME, which goes on while the machine sleeps and
// which all processes of a host read alike. 0 stands for never.
type BootTime = time.Duration

// Now reads the clock of instants.
func Now() BootTime {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // there is such a clock since Linux 2.6.39
	}
	return time.Duration(t.Nano())
}

// Source is one way of noticing that somebody is there, or that the machine is needed.
type Source interface {
	// Name is what people call it: "input devices", "logind", "terminals". No two sources
	// of a machine have the same.
	Name() string

	// Run watches until ctx ends, and returns only then. It tells the whole of what it
	// sees whenever that changes, of input as soon as it can and then no more than some
	// twenty times a second, and once at its beginning. What is wrong with it is told as
	// Broken, and tried again; it is no reason to return. Tell does not block for long,
	// and may be called by several goroutines.
	Run(ctx context.Context, tell func(SourceReading))
}

// SourceHealth is how a source is. The numbers are those of wire.IdleSource_Health.
type SourceHealth uint8

// The states of health.
const (
	Absent SourceHealth = iota // this machine has nothing of the kind
	Healthy
	Broken // it should be there and cannot be read
)

func (h SourceHealth) String() string { return [...]string{"absent", "well", "broken"}[h] }

// SourceCoverage is what of a person a source can notice, in rising order.
type SourceCoverage uint8

// The reaches.
const (
	Machine  SourceCoverage = iota // nobody: it speaks of the machine only (load, battery, heat)
	Terminal                       // who types into a terminal
	// who sits at the machine, as something else says that knows (logind, a session
	// agent)
	Console
	Hardware // who sits at the machine, by keys and mouse themselves
)

// SourceReading is all that a source sees at one moment. Fields that it knows nothing of
// stay zero.
type SourceReading struct {
	Name     string
	Health   SourceHealth
	Text     string // what it sees, or what is wrong, a semicolon, and what to do about it
	Coverage SourceCoverage

	Input        BootTime // the last time that a person was noticed, however
	ConsoleInput BootTime // the same, at the machine's own keyboard, mouse or screen
	// the same, as something else believes that may be late by minutes; it counts where
	// nothing is well that watches keys and mouse themselves
	SecondHandInput BootTime
	// why the machine is its owner's now, whatever the times of input say: "a video
	// call"; empty: nothing of that kind
	OwnerUseReason string

	SystemLoad
	OnBattery        bool
	Hot              bool // a thermal zone is at its passive trip point, or above
	ExclusiveProgram bool // an exclusive program runs, or somebody is in GameMode
	Sleeping         bool // the machine is about to sleep
}

// SystemLoad is how much the machine has to do, as the kernel counts it.
type SystemLoad struct {
	ForeignCPU      float64 // cores that processes other than tasks keep busy
	CPUPressure     float64 // percent of the last 10 s in which somebody waited for processor time (PSI, some avg10)
	MemoryPressure  float64 // likewise for memory
	MemoryAvailable int64   // bytes that the kernel could give without pushing anybody out; 0: not known
}
