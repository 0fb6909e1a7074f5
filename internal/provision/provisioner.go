package provision

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/provision/driver"
	"github.com/roost-batch/roost/internal/provision/ledger"
	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// The rhythm of the provisioner.
const (
	roundEvery  = 30 * time.Second
	statusEvery = time.Minute
	// between two looks at the ends of allocations whose pilots have left
	readEvery = 10 * time.Second
	// between two looks for a submit without an answer
	findEvery = 30 * time.Second
	// after which a submit that is not found has not happened
	findFor = 3 * time.Minute
	// for how long the token of an allocation is good
	tokenLifetime = 7 * 24 * time.Hour // the most that authorities give
	askTimeout    = 30 * time.Second
	// after which an allocation that waits gets another token
	renewAfter = 5 * 24 * time.Hour
	// between two removals of old files, and how old these are, in days
	cleanEvery = 12 * time.Hour
	maxAgeDays = 14
)

// TokenSource makes the tokens with which pilots join the pool.
type TokenSource interface {
	// PilotToken returns a token for some pilots of a provider.
	PilotToken(ctx context.Context, s *provider.Settings, pilots int, lifetime time.Duration) (string, error)
}

// Provisioner asks outer systems for nodes while tasks wait.
type Provisioner struct {
	Dir    string // of the journal
	Load   func() ([]provider.Settings, error)
	Source PoolSource
	Tokens TokenSource
	Log    *slog.Logger
	// NewSystem makes the interface to an outer system; nil: driver.New
	NewSystem func(*provider.Settings) (driver.System, error)

	state    *plan.Provisioning
	journal  *ledger.Ledger
	workers  map[string]*providerWorker
	results  chan func()
	requests chan controlRequest
	last     plan.Result
	planned  time.Time
	loadErr  error // of the file with providers
	poolErr  error // of the last query of the pool
	pilots   []plan.Pilot
}

// providerWorker is what the provisioner remembers of a provider while it runs.
type providerWorker struct {
	settings  provider.Settings
	system    driver.System
	dir       string // absolute, on the outer system; "": not asked yet
	busy      bool   // one of its programs runs
	askedAt   time.Time
	readAt    time.Time
	cleanedAt time.Time
	renewedAt map[string]time.Time // by key: when it got another token
	foundAt   map[string]time.Time // by key: the last look for it
	submitted map[string]bool      // keys that this process has submitted itself
}

// Run runs the provisioner until its context ends. Ended or killed, it leaves its
// allocations alone; each ends by itself.
func (p *Provisioner) Run(ctx context.Context) error {
	if p.NewSystem == nil {
		p.NewSystem = driver.New
	}
	var err error
	if p.journal, p.state, err = ledger.Open(p.Dir); err != nil {
		return err
	}
	defer p.journal.Close()
	p.requests = make(chan controlRequest)
	server, err := listenControl(p.Dir, p.requests)
	if err != nil {
		return err
	}
	defer server.Close()
	p.Log.Info("provisioner starts", "dir", p.Dir)
	return p.loop(ctx)
}

// loop owns the state until its context ends.
func (p *Provisioner) loop(ctx context.Context) error {
	p.workers, p.results = map[string]*providerWorker{}, make(chan func(), 16)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			p.waitForWorkers()
			return p.journal.Write(p.state)
		case f := <-p.results:
			f()
			if err := p.journal.Write(p.state); err != nil {
				return err
			}
			timer.Reset(0)
		case r := <-p.requests:
			r.reply <- p.answer(r)
			if err := p.journal.Write(p.state); err != nil {
				return err
			}
			timer.Reset(0)
		case <-timer.C:
			next, err := p.round(ctx)
			if err != nil {
				return err
			}
			timer.Reset(next)
		}
	}
}

// waitForWorkers folds in the results of programs that still run.
func (p *Provisioner) waitForWorkers() {
	for _, w := range p.workers {
		for w.busy {
			(<-p.results)()
		}
	}
}

// round plans once, and starts what the plan says. An error is one of the journal.
func (p *Provisioner) round(ctx context.Context) (next time.Duration, err error) {
	p.reload()
	now := time.Now()
	demand, ok := p.observe(ctx)
	if ok {
		p.last, p.planned = p.state.Plan(now, demand, p.pilots), now
		p.state.NoteSurplus(p.last.Surplus, now)
	} else {
		p.last.Decisions = nil // the pool is not seen: nothing is decided
	}
	p.state.Forget(now)
	for _, d := range p.last.Decisions {
		if w := p.workers[d.Provider]; w != nil && !w.busy && d.Action == plan.Submit {
			if err := p.submit(ctx, w, d); err != nil {
				return 0, err
			}
		}
	}
	for name, w := range p.workers {
		if w.busy {
			continue
		}
		if err := p.cancelOrAsk(ctx, name, w, now); err != nil {
			return 0, err
		}
	}
	next = roundEvery
	if at := p.last.Next; !at.IsZero() {
		next = max(min(next, time.Until(at)), time.Second)
	}
	return next, p.journal.Write(p.state)
}

// reload reads the file with providers. While it is wrong, the last one counts.
func (p *Provisioner) reload() {
	list, err := p.Load()
	if err != nil {
		if p.loadErr == nil {
			p.Log.Error("providers", "error", err)
		}
		p.loadErr = err
		return
	}
	p.loadErr = nil
	p.state.SetProviders(list)
	for _, s := range p.state.Providers {
		w := p.workers[s.Name]
		if w != nil && (w.busy || reflect.DeepEqual(w.settings, s.Settings)) {
			continue
		}
		system, err := p.NewSystem(&s.Settings)
		if err != nil {
			p.loadErr = err
			continue
		}
		p.workers[s.Name] = &providerWorker{settings: s.Settings, system: system, foundAt: map[string]time.Time{},
			submitted: map[string]bool{}, renewedAt: map[string]time.Time{}, cleanedAt: time.Now()}
	}
}

// observe asks the pool. It reports false if there is no answer.
func (p *Provisioner) observe(ctx context.Context) ([]plan.Demand, bool) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	pilots, err := p.Source.Pilots(ctx)
	if err == nil {
		p.pilots = pilots
		p.state.SeePilots(pilots, time.Now())
		var demand []plan.Demand
		if demand, err = p.Source.Demand(ctx); err == nil {
			p.poolErr = nil
			return demand, true
		}
	}
	if p.poolErr == nil {
		p.Log.Warn("the pool does not answer; nothing is decided until it does", "error", err)
	}
	p.poolErr = err
	return nil, false
}

// newKey makes the key of an allocation. Its 14 letters and digits may be the name of a
// job in each outer system.
func newKey() string {
	var b [8]byte
	rand.Read(b[:])
	return "rp" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))[:12]
}

// keyPattern is what the keys of allocations have in common, for a shell.
const keyPattern = "rp????????????"

// start runs f, which may run programs, and then the function that it returns, in the
// goroutine of the state. The context does not end with the provisioner: a submit that
// was begun is waited for.
func (p *Provisioner) start(ctx context.Context, w *providerWorker, f func(ctx context.Context) func()) {
	w.busy = true
	ctx = context.WithoutCancel(ctx)
	go func() {
		fold := f(ctx)
		p.results <- func() {
			w.busy = false
			fold()
		}
	}()
}

// submit begins an allocation. The journal has it before anything runs (R11).
func (p *Provisioner) submit(ctx context.Context, w *providerWorker, d plan.Decision) error {
	key := newKey()
	a := *p.state.Begin(key, d, time.Now())
	if err := p.journal.Write(p.state); err != nil {
		return err
	}
	s := w.settings
	excluded := p.state.Provider(s.Name).History.ExcludedHosts(time.Now())
	w.submitted[key], w.foundAt[key] = true, time.Now()
	p.Log.Info("submit", "provider", s.Name, "key", key, "nodes", a.Nodes, "reason", d.Reason)
	p.start(ctx, w, func(ctx context.Context) func() {
		id, err := submitJob(ctx, w, &a, p.Tokens, excluded)
		return func() {
			switch now := time.Now(); {
			case err == nil:
				p.Log.Info("submitted", "provider", s.Name, "key", key, "id", id)
				p.state.SubmitTaken(key, id, now)
			case errors.Is(err, errMayHaveSubmitted):
				p.Log.Warn("submit without an answer", "provider", s.Name, "key", key, "error", err)
				p.state.SubmitUnanswered(key, err.Error(), now)
			default:
				p.Log.Warn("submit refused", "provider", s.Name, "key", key, "error", err)
				p.state.SubmitRefused(key, err.Error(), now)
			}
		}
	})
	return nil
}

// errMayHaveSubmitted says that the outer system may have the job.
var errMayHaveSubmitted = errors.New("the outer system may have it all the same")

// submitJob writes the files of an allocation and submits it.
func submitJob(ctx context.Context, w *providerWorker, a *plan.Allocation, tokens TokenSource,
	excluded []string) (id string, err error) {
	s := &w.settings
	if err := w.resolveDir(ctx); err != nil {
		return "", err
	}
	token, err := tokens.PilotToken(ctx, s, a.Nodes, tokenLifetime)
	if err != nil {
		return "", fmt.Errorf("token for the pilots: %w", err)
	}
	shell := driver.Shell{Via: s.Via}
	if err := shell.WriteFile(ctx, w.dir, tokenFile(a.Key), token); err != nil {
		return "", err
	}
	id, err = w.system.Submit(ctx, w.job(a, excluded))
	if err == nil {
		return id, nil
	}
	found, findErr := w.system.Find(ctx, a.Key)
	switch {
	case findErr == nil && found != "":
		return found, nil
	case findErr != nil || errors.Is(err, roost.Unavailable):
		return "", fmt.Errorf("%w: %w", errMayHaveSubmitted, err)
	}
	shell.RemoveFiles(ctx, w.dir, allocationFiles(a.Key)...)
	return "", err
}

// resolveDir finds out where the directory on the outer system is.
func (w *providerWorker) resolveDir(ctx context.Context) (err error) {
	if w.dir == "" {
		w.dir, err = driver.Shell{Via: w.settings.Via}.ResolveDir(ctx, directoryOf(&w.settings))
	}
	return err
}

// job is what the outer system gets of an allocation.
func (w *providerWorker) job(a *plan.Allocation, excluded []string) driver.Job {
	s := &w.settings
	return driver.Job{Key: a.Key, Script: scriptText(s, a, w.dir), Nodes: a.Nodes, Walltime: a.Walltime,
		Margin: s.Margin, Node: s.Node.Resources, Exclude: excluded, Directory: w.dir,
		Output: w.dir + "/" + outputFile(a.Key)}
}
