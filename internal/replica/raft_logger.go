package replica

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// logInterval is how often the same message of raft is logged: raft logs each attempt to
// reach an unreachable replica.
const logInterval = 30 * time.Second

// raftLogger logs raft's messages at one level lower. This package logs what matters to
// administrators itself.
type raftLogger struct {
	hclog.Logger // implements the methods not defined here
	log          *slog.Logger
	limiter      *logLimiter
}

type logLimiter struct {
	mu            sync.Mutex
	lastByMessage map[string]time.Time // by message; raft's messages are constants, so they are few
}

func newLogger(log *slog.Logger) hclog.Logger {
	return raftLogger{hclog.NewNullLogger(), log, &logLimiter{lastByMessage: map[string]time.Time{}}}
}

func (l raftLogger) Log(level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	if level >= hclog.Error {
		to = slog.LevelWarn
		if l.limiter.wasLoggedRecently(msg) {
			to = slog.LevelDebug
		}
	}
	l.log.Log(context.Background(), to, "raft: "+msg, args...)
}

func (s *logLimiter) wasLoggedRecently(msg string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.lastByMessage[msg]) < logInterval {
		return true
	}
	s.lastByMessage[msg] = time.Now()
	return false
}

func (l raftLogger) Trace(msg string, args ...any)  {}
func (l raftLogger) Debug(msg string, args ...any)  { l.Log(hclog.Debug, msg, args...) }
func (l raftLogger) Info(msg string, args ...any)   { l.Log(hclog.Info, msg, args...) }
func (l raftLogger) Warn(msg string, args ...any)   { l.Log(hclog.Warn, msg, args...) }
func (l raftLogger) Error(msg string, args ...any)  { l.Log(hclog.Error, msg, args...) }
func (l raftLogger) With(...any) hclog.Logger       { return l }
func (l raftLogger) Named(string) hclog.Logger      { return l }
func (l raftLogger) ResetNamed(string) hclog.Logger { return l }
