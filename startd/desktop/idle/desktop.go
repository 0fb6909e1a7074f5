package idle

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/godbus/dbus/v5"
)

// SessionBusSource asks the programs of a user's session, over the session bus, whether
// somebody is there. It speaks D-Bus only: a bare X server without a desktop is not
// asked.
type SessionBusSource struct {
	conn        *dbus.Conn
	screenSaver idleUnitDetector
}

// OpenDesktop connects to the bus of the session that this process belongs to.
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

// Done is closed when the bus is gone, and with it the session.
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

// ReadPresence asks all that may know. What does not run is not started for it.
func (d *SessionBusSource) ReadPresence(ctx context.Context) (SessionPresence, error) {
	var p SessionPresence
	if err := d.conn.Context().Err(); err != nil {
		return p, fmt.Errorf("session bus: %w", err)
	}
	var ms uint64
	var count uint32
	if d.ask(ctx, mutter, mutterPath, mutter+".GetIdletime", nil, &ms) == nil {
		p.Origin, p.Input = "GNOME", instantBefore(time.Duration(min(ms, 1<<40))*time.Millisecond, Now())
	} else if d.ask(ctx, screenSaver, screenSaverPath, screenSaver+".GetSessionIdleTime", nil, &count) == nil {
		now := Now()
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

// instantBefore is the instant so long before now.
func instantBefore(idle time.Duration, now BootTime) BootTime { return max(now-idle, 1) }

// idleUnitDetector finds out what GetSessionIdleTime counts. Desktops differ: some say
// seconds, some thousandths; nothing says which. While nobody is there it grows, and by
// that one sees it. Until then it is taken for thousandths: somebody was there a moment
// ago, which is to the owner's side.
type idleUnitDetector struct {
	base    uint32   // what was said
	at      BootTime // then
	last    uint32   // what was said last
	seconds bool
	known   bool
}

func (g *idleUnitDetector) detect(count uint32, now BootTime) time.Duration {
	past, grown := now-g.at, time.Duration(count)-time.Duration(g.base)
	touched := count < g.last
	g.last = count
	switch {
	case g.known:
	case g.at == 0 || touched:
		g.base, g.at = count, now
	case past >= 2*time.Second && grown*time.Millisecond >= past/2:
		g.known = true
	case past >= 10*time.Second: // a few thousandths each time that one looks is what nobody's hands do for so long
		g.seconds = (grown*time.Second - past).Abs() <= 2*time.Second
		g.known, g.base, g.at = g.seconds, count, now
	}
	if g.seconds {
		return time.Second
	}
	return time.Millisecond
}
