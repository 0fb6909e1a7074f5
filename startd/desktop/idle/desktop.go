package idle

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
)

// SessionBusSource asks the programs of a user's session, over the session bus, for
// input. It supports D-Bus only, and no bare X server without a desktop.
type SessionBusSource struct {
	conn        *dbus.Conn
	screenSaver idleUnitDetector
}

// OpenDesktop connects to the bus of the session of this process.
func OpenDesktop(ctx context.Context) (*SessionBusSource, error) {
	address := os.Getenv("DBUS_SESSION_BUS_ADDRESS")
	if address == "" {
		address = fmt.Sprintf("unix:path=/run/user/%d/bus", os.Getuid())
	}
	conn, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("session bus %s: %w", address, err)
	}
	return &SessionBusSource{conn: conn}, nil
}

// Close ends the connection.
func (d *SessionBusSource) Close() error { return d.conn.Close() }

// Done is closed when the bus, and so the session, has ended.
func (d *SessionBusSource) Done() <-chan struct{} { return d.conn.Context().Done() }

// Names and paths on the session bus.
const (
	mutter          = "org.gnome.Mutter.IdleMonitor"
	mutterPath      = "/org/gnome/Mutter/IdleMonitor/Core"
	screenSaver     = "org.freedesktop.ScreenSaver"
	screenSaverPath = "/org/freedesktop/ScreenSaver"
	gnome           = "org.gnome.SessionManager"
	gnomePath       = "/org/gnome/SessionManager"
	inhibit         = "org.freedesktop.PowerManagement.Inhibit"
	inhibitPath     = "/org/freedesktop/PowerManagement/Inhibit"
	gameMode        = "com.feralinteractive.GameMode"
	gameModePath    = "/com/feralinteractive/GameMode"

	inhibitIdleFlag = uint32(8) // of the flags of org.gnome.SessionManager.IsInhibited
)

// ReadPresence asks all services that may know. It does not start any of them.
func (d *SessionBusSource) ReadPresence(ctx context.Context) (SessionPresence, error) {
	var p SessionPresence
	if err := d.conn.Context().Err(); err != nil {
		return p, fmt.Errorf("session bus: %w", err)
	}
	var ms uint64
	var count uint32
	if d.ask(ctx, mutter, mutterPath, mutter+".GetIdletime", nil, &ms) == nil {
		p.Origin, p.Input = "GNOME", instantBefore(time.Duration(min(ms, 1<<40))*time.Millisecond, boottime.Now())
	} else if d.ask(ctx, screenSaver, screenSaverPath, screenSaver+".GetSessionIdleTime", nil, &count) == nil {
		now := boottime.Now()
		p.Origin, p.Input = "the screen saver",
			instantBefore(time.Duration(count)*d.screenSaver.detect(count, now), now)
	}
	var yes bool
	if d.ask(ctx, gnome, gnomePath, gnome+".IsInhibited", []any{inhibitIdleFlag}, &yes) == nil && yes {
		p.InUseReason = "a program keeps the session awake"
	} else if d.ask(ctx, inhibit, inhibitPath, inhibit+".HasInhibit", nil, &yes) == nil && yes {
		p.InUseReason = "a program keeps the session awake"
	}
	var games dbus.Variant
	if d.ask(ctx, gameMode, gameModePath, properties+".Get", []any{gameMode, "ClientCount"}, &games) == nil {
		n, _ := games.Value().(int32)
		p.Game = n > 0
	}
	return p, nil
}

func (d *SessionBusSource) ask(ctx context.Context, name, path, method string, args []any, to any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return d.conn.Object(name, dbus.ObjectPath(path)).CallWithContext(ctx, method, dbus.FlagNoAutoStart,
		args...).Store(to)
}

// instantBefore returns the boot time that lies the given duration before now.
func instantBefore(idle time.Duration, now roost.BootTime) roost.BootTime { return max(now-idle, 1) }

// idleUnitDetector determines the unit of GetSessionIdleTime. Some desktops return
// seconds, others milliseconds, and nothing states which. While there is no input the
// value grows, which shows the unit. Until then it counts as milliseconds: that means
// recent input, which is the safe side for the owner.
type idleUnitDetector struct {
	base    uint32         // first value of the measurement
	at      roost.BootTime // boot time of base
	last    uint32         // latest value
	seconds bool
	known   bool
}

func (g *idleUnitDetector) detect(count uint32, now roost.BootTime) time.Duration {
	past, grown := now-g.at, time.Duration(count)-time.Duration(g.base)
	touched := count < g.last
	g.last = count
	switch {
	case g.known:
	case g.at == 0 || touched:
		g.base, g.at = count, now
	case past >= 2*time.Second && grown*time.Millisecond >= past/2:
		g.known = true
	case past >= 10*time.Second: // milliseconds near 0 at each reading for so long would need constant input
		g.seconds = (grown*time.Second - past).Abs() <= 2*time.Second
		g.known, g.base, g.at = g.seconds, count, now
	}
	if g.seconds {
		return time.Second
	}
	return time.Millisecond
}
