package idle

import (
	"context"

	"github.com/roost-batch/roost"
)

// Source is one way to detect a person at the machine, or that the owner needs it.
type Source interface {
	// Name is the name for people: "input devices", "logind", "terminals". It is unique
	// on a machine.
	Name() string

	// Run watches until ctx ends, and only then returns. It publishes a complete reading
	// at its beginning and at each change: for input as soon as possible and then at most
	// some twenty times a second. It publishes an error as Broken and tries again; it
	// does not return for it. Tell does not block for long, and several goroutines may
	// call it.
	Run(ctx context.Context, tell func(SourceReading))
}

// SourceHealth is the health of a source. The numbers are those of
// wire.IdleSource_Health.
type SourceHealth uint8

// The states of health.
const (
	Absent SourceHealth = iota // this machine has nothing of the kind
	Healthy
	Broken // it should exist and cannot be read
)

func (h SourceHealth) String() string { return [...]string{"absent", "well", "broken"}[h] }

// SourceCoverage is which kind of input a source can detect, in increasing order.
type SourceCoverage uint8

// The kinds of coverage.
const (
	Machine  SourceCoverage = iota // no person: the state of the machine only (load, battery, heat)
	Terminal                       // people who type into a terminal
	// people at the console, indirectly (logind, a session agent)
	Console
	Hardware // people at the console, from the input devices themselves
)

// SourceReading is the complete reading of a source. Fields that it does not know are
// zero.
type SourceReading struct {
	Name     string
	Health   SourceHealth
	Text     string // what it observes; or an error, a semicolon, and the remedy
	Coverage SourceCoverage

	Input        roost.BootTime // boot time of the last input of any kind
	ConsoleInput roost.BootTime // boot time of the last input at the machine's own keyboard, mouse or screen
	// boot time of the last console input from a source that may be minutes late; it
	// counts only while no healthy source watches the input devices
	IndirectInput roost.BootTime
	// why the owner needs the machine now, whatever the times of input: "a video call";
	// empty: no reason
	OwnerUseReason string

	SystemLoad
	OnBattery        bool
	Hot              bool // a thermal zone is at its passive trip point, or above
	ExclusiveProgram bool // an exclusive program runs, or GameMode is on
	Sleeping         bool // the machine is about to sleep
}

// SystemLoad is the load of the machine as the kernel measures it.
type SystemLoad struct {
	ForeignCPU      float64 // cores that processes other than tasks use
	CPUPressure     float64 // percent of the last 10 s in which work waited for CPU time (PSI, some avg10)
	MemoryPressure  float64 // percent of the last 10 s in which work waited for memory
	MemoryAvailable int64   // bytes available without swapping; 0: unknown
}
