package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func testSwitch(t *testing.T, daemon string) (s *levelSwitch, out *bytes.Buffer) {
	out, s = new(bytes.Buffer), &levelSwitch{daemon: daemon, usual: slog.LevelInfo, level: new(slog.LevelVar),
		path: LogLevelsPath(t.TempDir())}
	s.log = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: s.level}))
	return s, out
}

func (s *levelSwitch) write(t *testing.T, levels ...LogLevel) {
	t.Helper()
	l, err := ReadLogLevels(s.path)
	if err != nil {
		t.Fatal(err)
	}
	l.Set(time.Now(), levels...)
	if err := l.Write(s.path); err != nil {
		t.Fatal(err)
	}
	s.apply(time.Now())
}

// TestLogLevelReverts: a level is logged with who asked for it, and ends by itself. That
// is so for a daemon that starts meanwhile, too.
func TestLogLevelReverts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, out := testSwitch(t, "schedd")
		debugs := func(s *levelSwitch) bool { return s.log.Enabled(context.Background(), slog.LevelDebug) }
		s.write(t, LogLevel{Daemon: "schedd", Level: slog.LevelDebug, Since: time.Now(),
			Until: time.Now().Add(time.Minute), By: "ann"}, LogLevel{Daemon: "startd", Level: slog.LevelError,
			Since: time.Now(), Until: time.Now().Add(time.Hour), By: "ann"})
		if !debugs(s) || !strings.Contains(out.String(), "by=ann") {
			t.Fatalf("after the change: debug %v, log %q", debugs(s), out)
		}
		time.Sleep(30 * time.Second)
		restarted, _ := testSwitch(t, "schedd")
		restarted.path = s.path
		restarted.apply(time.Now())
		time.Sleep(29 * time.Second)
		if !debugs(s) || !debugs(restarted) {
			t.Fatal("the level ended early")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if debugs(s) || debugs(restarted) || !strings.Contains(out.String(), "its time is over") {
			t.Fatalf("the level did not end: %v %v, log %q", debugs(s), debugs(restarted), out)
		}
		l, err := ReadLogLevels(s.path)
		if err != nil {
			t.Fatal(err)
		}
		if l.Set(time.Now()); len(l.Levels) != 1 || l.Levels[0].Daemon != "startd" {
			t.Errorf("levels left: %+v", l.Levels)
		}
	})
}

// TestLogLevelEndsOnRequest: a level whose time is set to nothing ends at once.
func TestLogLevelEndsOnRequest(t *testing.T) {
	s, out := testSwitch(t, "schedd")
	s.write(t, LogLevel{Daemon: "schedd", Level: slog.LevelDebug, Since: time.Now(), Until: time.Now().Add(time.Hour)})
	s.write(t, LogLevel{Daemon: "schedd"})
	if s.level.Level() != slog.LevelInfo || !strings.Contains(out.String(), "it was asked for") {
		t.Errorf("level %v, log %q", s.level.Level(), out)
	}
}

// TestLogLevelClock: with a clock that was set back, a level lasts no longer than asked.
func TestLogLevelClock(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := LogLevels{Levels: []LogLevel{{Daemon: "startd", Since: now, Until: now.Add(time.Minute)},
		{Daemon: "guard", Since: now, Until: now.Add(1000 * time.Hour)}}}
	if _, left := l.Of("startd", now.Add(-time.Hour)); left != time.Minute {
		t.Errorf("left %v, want a minute", left)
	}
	if _, left := l.Of("guard", now); left != MaxLogLevelTime {
		t.Errorf("left %v, want %v", left, MaxLogLevelTime)
	}
	if _, left := l.Of("startd", now.Add(time.Minute)); left != 0 {
		t.Errorf("left %v after the end", left)
	}
}

// TestLogLevelFile: a damaged file changes nothing, and is named in the log. A daemon
// follows the file without a signal.
func TestLogLevelFile(t *testing.T) {
	s, out := testSwitch(t, "schedd")
	if err := os.WriteFile(s.path, []byte(`{"levels": [{"dae`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.apply(time.Now())
	if s.level.Level() != slog.LevelInfo || !strings.Contains(out.String(), filepath.Base(s.path)) {
		t.Fatalf("level %v, log %q", s.level.Level(), out)
	}
	changed := make(chan struct{})
	s.log = slog.New(&levelProbe{changed: changed})
	s.follow()
	l := LogLevels{Levels: []LogLevel{{Daemon: "schedd", Level: slog.LevelDebug, Since: time.Now(),
		Until: time.Now().Add(time.Hour)}}}
	if err := l.Write(s.path); err != nil {
		t.Fatal(err)
	}
	<-changed
	if s.level.Level() != slog.LevelDebug {
		t.Errorf("level %v after the file has changed", s.level.Level())
	}
}

// levelProbe closes a channel at the record of a change.
type levelProbe struct{ changed chan struct{} }

func (p *levelProbe) Enabled(context.Context, slog.Level) bool { return true }

func (p *levelProbe) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "log level changed" {
		close(p.changed)
	}
	return nil
}

func (p *levelProbe) WithAttrs([]slog.Attr) slog.Handler { return p }
func (p *levelProbe) WithGroup(string) slog.Handler      { return p }
