package daemon

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// LogLevelsVariable is the environment variable with the path of the file of log levels.
// A master sets it for its daemons.
const LogLevelsVariable = "ROOST_LOG_LEVELS"

// MaxLogLevelTime bounds how long a log level is in force.
const MaxLogLevelTime = 24 * time.Hour

// maxLogLevelsFile bounds what is read of the file.
const maxLogLevelsFile = 64 << 10

// LogLevel is the log level of a daemon for a time.
type LogLevel struct {
	Daemon string     `json:"daemon"` // "schedd"
	Level  slog.Level `json:"level"`
	Since  time.Time  `json:"since"`
	Until  time.Time  `json:"until"`
	By     string     `json:"by"` // the account that asked for it
}

// LogLevels is the file of the log levels of a node.
type LogLevels struct {
	Version int        `json:"v"`
	Levels  []LogLevel `json:"levels"`
}

// LogLevelsPath returns the path of the file, in the directory for what daemons need
// while they run.
func LogLevelsPath(runDir string) string { return filepath.Join(runDir, "log-levels.json") }

// ReadLogLevels reads the file. One that does not exist has no levels.
func ReadLogLevels(path string) (l LogLevels, err error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) || err == nil && len(text) == 0 {
		return l, nil
	}
	if err == nil && len(text) > maxLogLevelsFile {
		err = fmt.Errorf("it has %d bytes, %d at most", len(text), maxLogLevelsFile)
	}
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return LogLevels{}, fmt.Errorf("log levels in %s: %w", path, err)
	}
	return l, nil
}

// Set replaces the levels of the daemons in set, and forgets what is over at that time.
func (l *LogLevels) Set(now time.Time, set ...LogLevel) {
	l.Version = 1
	var rest []LogLevel
	for _, old := range l.Levels {
		replaced := !now.Before(old.Until)
		for _, s := range set {
			replaced = replaced || s.Daemon == old.Daemon
		}
		if !replaced {
			rest = append(rest, old)
		}
	}
	for _, s := range set {
		if now.Before(s.Until) {
			rest = append(rest, s)
		}
	}
	l.Levels = rest
}

// Write writes the file in its place, because daemons watch it.
func (l *LogLevels) Write(path string) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Of returns the level of a daemon now, and how much longer it has it. Without one left
// is 0.
func (l *LogLevels) Of(daemon string, now time.Time) (level LogLevel, left time.Duration) {
	for _, one := range l.Levels {
		if one.Daemon == daemon && now.Before(one.Until) {
			// a clock that was set back makes it no longer than it was meant to be
			return one, min(one.Until.Sub(now), one.Until.Sub(one.Since), MaxLogLevelTime)
		}
	}
	return LogLevel{}, 0
}

// levelSwitch changes the level of the logger of a daemon while it runs.
type levelSwitch struct {
	daemon, path string
	usual        slog.Level
	level        *slog.LevelVar
	log          *slog.Logger

	mu     sync.Mutex
	inside LogLevel // in force; its zero value is the usual one
	revert *time.Timer
}

// follow applies the levels in the file whenever it changes. It returns at once; what it
// starts ends with the process. A daemon that may not watch the file has its usual level.
func (s *levelSwitch) follow() {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		s.log.Debug("log levels cannot change while this daemon runs", "err", err)
		return
	}
	if _, err := unix.InotifyAddWatch(fd, s.path, unix.IN_CLOSE_WRITE); err != nil {
		unix.Close(fd)
		s.log.Debug("log levels cannot change while this daemon runs", "file", s.path, "err", err)
		return
	}
	s.apply(time.Now())
	go func() {
		defer unix.Close(fd)
		events := make([]byte, 4096)
		for {
			if n, err := unix.Read(fd, events); err == unix.EINTR {
				continue
			} else if err != nil || n <= 0 {
				return
			}
			s.apply(time.Now())
		}
	}()
}

// apply puts in force what the file says now. The log says who asked for it.
func (s *levelSwitch) apply(now time.Time) {
	levels, err := ReadLogLevels(s.path)
	if err != nil {
		s.log.Warn("log levels", "err", err)
		return
	}
	next, left := levels.Of(s.daemon, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revert != nil {
		s.revert.Stop()
		s.revert = nil
	}
	if left > 0 {
		s.revert = time.AfterFunc(left, s.restore)
	}
	switch {
	case next == s.inside:
	case left == 0:
		s.restoreLocked("it was asked for")
	default:
		s.inside = next
		s.level.Set(next.Level)
		s.log.Warn("log level changed", "level", next.Level, "for", left.Round(time.Second), "by", next.By)
	}
}

// restore puts the usual level in force because the time of another is over.
func (s *levelSwitch) restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restoreLocked("its time is over")
}

func (s *levelSwitch) restoreLocked(why string) {
	if s.inside == (LogLevel{}) {
		return
	}
	s.inside = LogLevel{}
	s.level.Set(s.usual)
	s.log.Warn("log level is the usual one again", "level", s.usual, "why", why)
}
