package replica

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// logEvery is how often the same complaint of raft's is passed on: it makes one for each attempt to reach a replica that is away.
const logEvery = 30 * time.Second

// logger passes on what raft says, a level lower than raft says it: what matters to people this package says itself.
type logger struct {
	hclog.Logger // answers what is not asked here
	log          *slog.Logger
	said         *said
}

type said struct {
	mu   sync.Mutex
	last map[string]time.Time // by message; raft's are constants, so they are few
}

func newLogger(log *slog.Logger) hclog.Logger {
	return logger{hclog.NewNullLogger(), log, &said{last: map[string]time.Time{}}}
}

func (l logger) Log(level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	if level >= hclog.Error {
		to = slog.LevelWarn
		if l.said.lately(msg) {
			to = slog.LevelDebug
		}
	}
	l.log.Log(context.Background(), to, "raft: "+msg, args...)
}

func (s *said) lately(msg string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.last[msg]) < logEvery {
		return true
	}
	s.last[msg] = time.Now()
	return false
}

func (l logger) Trace(msg string, args ...any)  {}
func (l logger) Debug(msg string, args ...any)  { l.Log(hclog.Debug, msg, args...) }
func (l logger) Info(msg string, args ...any)   { l.Log(hclog.Info, msg, args...) }
func (l logger) Warn(msg string, args ...any)   { l.Log(hclog.Warn, msg, args...) }
func (l logger) Error(msg string, args ...any)  { l.Log(hclog.Error, msg, args...) }
func (l logger) With(...any) hclog.Logger       { return l }
func (l logger) Named(string) hclog.Logger      { return l }
func (l logger) ResetNamed(string) hclog.Logger { return l }
