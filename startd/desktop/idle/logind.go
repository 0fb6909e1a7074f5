package idle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
)

// LogindSource receives session data from systemd's login manager over the system bus
// (org.freedesktop.login1(5)). It learns who is logged in where, which programs inhibit
// idleness, and when the machine is about to sleep. It delays sleep until the tasks are
// frozen: a task that runs into sleep wakes up with expired connections and leases.
type LogindSource struct {
	address       string             // of the bus
	isTaskProcess func(pid int) bool // whether a process belongs to a task
}

const (
	logindName        = "logind"
	loginService      = "org.freedesktop.login1"
	loginPath         = "/org/freedesktop/login1"
	loginManager      = "org.freedesktop.login1.Manager"
	logindSession     = "org.freedesktop.login1.Session"
	properties        = "org.freedesktop.DBus.Properties"
	systemBus         = "unix:path=/run/dbus/system_bus_socket"
	answerTimeout     = 3 * time.Second
	reconnectInterval = 5 * time.Second
	loginScanInterval = 5 * time.Second // interval of scans without signals
	// time to freeze tasks before the machine sleeps; logind waits for 5 s
	// (InhibitDelayMaxSec=)
	sleepFreezeTime = 500 * time.Millisecond
	maxSessions     = 200 // bounds the sessions that are read
	signalBacklog   = 64
)

// NewLogind returns the source. Ours reports whether a process belongs to a task: an
// inhibitor of a task does not count as the owner's.
func NewLogind(ours func(pid int) bool) *LogindSource {
	address := os.Getenv("DBUS_SYSTEM_BUS_ADDRESS")
	if address == "" {
		address = systemBus
	}
	return &LogindSource{address: address, isTaskProcess: ours}
}

// Name is the source's name.
func (l *LogindSource) Name() string { return logindName }

// Run follows logind, and reconnects when the connection is lost.
func (l *LogindSource) Run(ctx context.Context, tell func(SourceReading)) {
	tracker := &sessionTracker{}
	for ctx.Err() == nil {
		s := l.followBus(ctx, tracker, tell)
		if ctx.Err() != nil {
			return
		}
		s.Name, s.Input, s.ConsoleInput = l.Name(), tracker.input, tracker.consoleInput
		tell(s)
		select {
		case <-ctx.Done():
		case <-time.After(reconnectInterval):
		}
	}
}

// followBus publishes logind's data until the connection fails, and returns the reason.
func (l *LogindSource) followBus(ctx context.Context, tracker *sessionTracker, tell func(SourceReading)) SourceReading {
	if path, ok := strings.CutPrefix(l.address, "unix:path="); ok {
		if _, err := os.Stat(strings.Split(path, ",")[0]); errors.Is(err, os.ErrNotExist) {
			return SourceReading{Text: "this machine has no system bus"}
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := dbus.Connect(l.address, dbus.WithContext(ctx),
		dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()))
	if err != nil {
		return brokenReading("the system bus (%s) does not answer: %v; start dbus.service", l.address, err)
	}
	defer conn.Close()
	f := &logindConn{source: l, conn: conn, tracker: tracker, publish: tell}
	defer f.releaseSleep()
	if err := f.connectLogind(ctx); err != nil {
		if errors.Is(err, errNoLogind) {
			return SourceReading{Text: err.Error()}
		}
		return brokenReading("logind does not answer: %v; see systemctl status systemd-logind", err)
	}
	return brokenReading("logind does not answer any more: %v; see systemctl status systemd-logind", f.run(ctx))
}

// brokenReading returns the reading of a source that does not work.
func brokenReading(format string, args ...any) SourceReading {
	return SourceReading{Health: Broken, Coverage: Console, Text: fmt.Sprintf(format, args...)}
}

var errNoLogind = errors.New("no logind is on the system bus of this machine")

// logindConn is one connection to logind.
type logindConn struct {
	source  *LogindSource
	conn    *dbus.Conn
	tracker *sessionTracker
	publish func(SourceReading)
	owner   string // logind's unique bus name, the sender of its signals
	signals chan *dbus.Signal

	delayInhibitor *os.File // while it is open logind delays sleep
	delayErr       error
	sleeping       bool
	delayTimer     <-chan time.Time // fires when delayInhibitor may be closed; nil: it stays open
}

// connectLogind checks for a logind and subscribes to its signals.
func (f *logindConn) connectLogind(ctx context.Context) error {
	bus := f.conn.BusObject()
	var activatable []string
	var here bool
	if err := callMethod(ctx, bus, "org.freedesktop.DBus.NameHasOwner", []any{loginService}, &here); err != nil {
		return err
	}
	if !here {
		if err := callMethod(ctx, bus, "org.freedesktop.DBus.ListActivatableNames", nil, &activatable); err != nil {
			return err
		}
		if !slices.Contains(activatable, loginService) {
			return errNoLogind
		}
		var started uint32
		if err := callMethod(ctx, bus, "org.freedesktop.DBus.StartServiceByName", []any{loginService, uint32(0)},
			&started); err != nil {
			return err
		}
	}
	if err := callMethod(ctx, bus, "org.freedesktop.DBus.GetNameOwner", []any{loginService}, &f.owner); err != nil {
		return err
	}
	f.signals = make(chan *dbus.Signal, signalBacklog)
	f.conn.Signal(f.signals)
	return f.conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(loginService), dbus.WithMatchPathNamespace(loginPath))
}

// run rereads all data after each signal of logind, as the signals are incomplete. There
// is none for some session properties (IdleSinceHint), nor for inhibitors.
func (f *logindConn) run(ctx context.Context) error {
	f.inhibitSleep(ctx)
	tick := time.NewTicker(loginScanInterval)
	defer tick.Stop()
	for {
		if err := f.publishReading(ctx); err != nil {
			return err
		}
		for heard := false; !heard; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-f.conn.Context().Done():
				return errors.New("the bus has closed the connection")
			case <-f.delayTimer:
				f.releaseSleep()
			case <-tick.C:
				heard = true
			case sig, ok := <-f.signals:
				if !ok {
					return errors.New("the bus has closed the connection")
				}
				// Any process on the bus may send signals that look like logind's.
				heard = sig.Sender == f.owner
			}
		}
	}
}

// publishReading reads all relevant data and publishes it.
func (f *logindConn) publishReading(ctx context.Context) error {
	manager := f.conn.Object(loginService, loginPath)
	var sleeping dbus.Variant
	if err := callMethod(ctx, manager, properties+".Get", []any{loginManager, "PreparingForSleep"},
		&sleeping); err != nil {
		return err
	}
	was := f.sleeping
	if f.sleeping, _ = sleeping.Value().(bool); f.sleeping && !was {
		// At once: the rest may take longer than the time before sleep.
		f.publish(SourceReading{Name: logindName, Health: Healthy, Sleeping: true,
			Text: "the machine is about to sleep", Input: f.tracker.input, ConsoleInput: f.tracker.consoleInput})
		f.delayTimer = time.After(sleepFreezeTime)
	} else if !f.sleeping && was {
		f.inhibitSleep(ctx)
	}
	var inhibitors []logindInhibitor
	if err := callMethod(ctx, manager, loginManager+".ListInhibitors", nil, &inhibitors); err != nil {
		return err
	}
	sessions, err := f.sessions(ctx, manager)
	if err != nil {
		return err
	}
	s := f.tracker.update(sessions, boottime.Now())
	s.Sleeping = f.sleeping
	if s.OwnerUseReason = inhibitReason(inhibitors, f.source.isTaskProcess); s.OwnerUseReason != "" {
		s.Text += "; " + s.OwnerUseReason
	}
	if f.delayErr != nil {
		s.Text += fmt.Sprintf("; sleep does not wait for tasks (%v), which root may ask of it", f.delayErr)
	}
	f.publish(s)
	return nil
}

// sessions reads all sessions. It skips one that ends meanwhile.
func (f *logindConn) sessions(ctx context.Context, manager dbus.BusObject) ([]loginSession, error) {
	var listed []struct {
		ID   string
		UID  uint32
		User string
		Seat string
		Path dbus.ObjectPath
	}
	if err := callMethod(ctx, manager, loginManager+".ListSessions", nil, &listed); err != nil {
		return nil, err
	}
	var all []loginSession
	for _, l := range listed[:min(len(listed), maxSessions)] {
		var p map[string]dbus.Variant
		err := callMethod(ctx, f.conn.Object(loginService, l.Path), properties+".GetAll", []any{logindSession}, &p)
		if gone := (dbus.Error{}); errors.As(err, &gone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, loginSession{
			id: l.ID, user: l.User, seat: l.Seat, kind: property[string](p, "Type"),
			class: property[string](p, "Class"), tty: property[string](p, "TTY"),
			active: property[bool](p, "Active"), remote: property[bool](p, "Remote"),
			locked:    property[bool](p, "LockedHint"),
			idle:      property[bool](p, "IdleHint"),
			idleSince: fromMonotonic(property[uint64](p, "IdleSinceHintMonotonic")),
		})
	}
	return all, nil
}

// inhibitSleep makes logind delay sleep for us.
func (f *logindConn) inhibitSleep(ctx context.Context) {
	f.releaseSleep()
	var fd dbus.UnixFD
	f.delayErr = callMethod(ctx, f.conn.Object(loginService, loginPath), loginManager+".Inhibit",
		[]any{"sleep", "roost", "tasks of the pool are stopped before the machine sleeps", "delay"}, &fd)
	if f.delayErr == nil {
		f.delayInhibitor = os.NewFile(uintptr(fd), "inhibitor")
	}
}

// releaseSleep permits the machine to sleep.
func (f *logindConn) releaseSleep() {
	f.delayTimer = nil
	if f.delayInhibitor != nil {
		f.delayInhibitor.Close()
		f.delayInhibitor = nil
	}
}

// callMethod calls a method that has one result.
func callMethod(ctx context.Context, object dbus.BusObject, method string, args []any, to any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return object.CallWithContext(ctx, method, 0, args...).Store(to)
}

// property returns a property, or the zero value if it is missing or of another type.
func property[T any](p map[string]dbus.Variant, name string) T {
	v, _ := p[name].Value().(T)
	return v
}

// fromMonotonic converts a CLOCK_MONOTONIC reading, in microseconds, to boot time.
// CLOCK_MONOTONIC does not advance while the machine sleeps.
func fromMonotonic(usec uint64) roost.BootTime {
	var t unix.Timespec
	if usec == 0 || unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	age := max(time.Duration(t.Nano())-time.Duration(usec)*time.Microsecond, 0)
	return max(boottime.Now()-age, 1)
}
