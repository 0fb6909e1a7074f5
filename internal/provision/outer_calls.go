package provision

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/provision/driver"
	"github.com/roost-batch/roost/internal/provision/plan"
)

// cancelOrAsk starts the next program of a provider. It cancels what is to be cancelled,
// looks for a submit without an answer, or asks for the status.
func (p *Provisioner) cancelOrAsk(ctx context.Context, name string, w *providerWorker, now time.Time) error {
	var ids []string
	for _, d := range p.last.Decisions {
		if d.Provider == name && d.Action == plan.Cancel {
			a := p.state.Allocations[d.Key]
			if a == nil || a.State == plan.Ended {
				continue
			}
			p.Log.Info("cancel", "provider", name, "key", d.Key, "id", a.OuterID, "reason", d.Reason)
			p.state.CancelOrdered(d, now)
			if a.OuterID != "" {
				ids = append(ids, a.OuterID)
			}
		}
	}
	if len(ids) > 0 {
		return p.cancel(ctx, w, ids)
	}
	for _, a := range p.state.Unanswered(name) {
		if now.Sub(w.foundAt[a.Key]) >= findEvery || !w.submitted[a.Key] && w.foundAt[a.Key].IsZero() {
			p.find(ctx, w, a.Key, now)
			return nil
		}
	}
	if now.Sub(w.askedAt) >= statusEvery {
		p.ask(ctx, name, w, now)
	}
	if !w.busy {
		p.readLeft(ctx, name, w, now)
	}
	if !w.busy {
		p.renewToken(ctx, name, w, now)
	}
	if !w.busy && now.Sub(w.cleanedAt) >= cleanEvery {
		p.cleanDirectory(ctx, name, w, now)
	}
	return nil
}

// renewToken gives an allocation that has waited for long another token. It may wait for
// longer than a token is good.
func (p *Provisioner) renewToken(ctx context.Context, name string, w *providerWorker, now time.Time) {
	for _, a := range p.state.Living(name) {
		since := a.Asked
		if at := w.renewedAt[a.Key]; at.After(since) {
			since = at
		}
		if a.Joins > 0 || a.OuterID == "" || !a.CancelAt.IsZero() || now.Sub(since) < renewAfter {
			continue
		}
		key, nodes := a.Key, a.Nodes
		w.renewedAt[key] = now
		p.start(ctx, w, func(ctx context.Context) func() {
			err := w.resolveDir(ctx)
			var token string
			if err == nil {
				token, err = p.Tokens.PilotToken(ctx, &w.settings, nodes, tokenLifetime)
			}
			if err == nil {
				err = driver.Shell{Via: w.settings.Via}.WriteFile(ctx, w.dir, tokenFile(key), token)
			}
			return func() {
				if err != nil { // it is tried again in an hour
					w.renewedAt[key] = now.Add(time.Hour - renewAfter)
					p.Log.Warn("another token for an allocation that waits", "key", key, "error", err)
				}
			}
		})
		return
	}
}

// cleanDirectory removes what allocations have printed that ended long ago.
func (p *Provisioner) cleanDirectory(ctx context.Context, name string, w *providerWorker, now time.Time) {
	w.cleanedAt = now
	var living []string
	for _, a := range p.state.Living(name) {
		living = append(living, a.Key)
	}
	p.start(ctx, w, func(ctx context.Context) func() {
		err := w.resolveDir(ctx)
		if err == nil {
			err = driver.Shell{Via: w.settings.Via}.RemoveOld(ctx, w.dir, keyPattern, maxAgeDays, living)
		}
		return func() {
			if err != nil {
				p.Log.Warn("old files of allocations", "provider", name, "error", err)
			}
		}
	})
}

// readLeft reads how allocations have ended whose pilots have all left. Until their end
// is known they count as pilots, and the outer system is asked seldom.
func (p *Provisioner) readLeft(ctx context.Context, name string, w *providerWorker, now time.Time) {
	var keys, ids []string
	for _, a := range p.state.Living(name) {
		if a.OuterID != "" && a.Joins > 0 && a.Live == 0 {
			keys, ids = append(keys, a.Key), append(ids, a.OuterID)
		}
	}
	if len(keys) == 0 || now.Sub(w.readAt) < readEvery {
		return
	}
	w.readAt = now
	p.start(ctx, w, func(ctx context.Context) func() {
		answers := map[string]plan.OuterStatus{}
		err := w.readEnds(ctx, keys, ids, answers)
		return func() {
			if err == nil {
				p.foldEnds(name, w, keys, ids, answers)
			}
		}
	})
}

// foldEnds folds in answers about some of the allocations.
func (p *Provisioner) foldEnds(name string, w *providerWorker, keys, ids []string,
	answers map[string]plan.OuterStatus) {
	var known []string
	for i, id := range ids {
		if _, ok := answers[id]; ok {
			known = append(known, keys[i])
		}
	}
	p.state.EndsRead(known, answers, time.Now())
	p.removeTokens(name, w, known)
}

// cancel cancels jobs. The journal has it before.
func (p *Provisioner) cancel(ctx context.Context, w *providerWorker, ids []string) error {
	if err := p.journal.Write(p.state); err != nil {
		return err
	}
	w.askedAt = time.Time{} // and then ask whether they have ended
	p.start(ctx, w, func(ctx context.Context) func() {
		err := w.system.Cancel(ctx, ids)
		return func() {
			if err != nil {
				p.Log.Warn("cancel; it is tried again", "provider", w.settings.Name, "ids", ids, "error", err)
			}
		}
	})
	return nil
}

// find looks for a submit without an answer by its key (R10).
func (p *Provisioner) find(ctx context.Context, w *providerWorker, key string, now time.Time) {
	w.foundAt[key] = now
	p.start(ctx, w, func(ctx context.Context) func() {
		id, err := w.system.Find(ctx, key)
		return func() {
			now := time.Now()
			a := p.state.Allocations[key]
			switch {
			case a == nil:
			case err != nil:
				p.state.StatusFailed(w.settings.Name, err.Error(), now)
			case id != "":
				p.Log.Info("found", "provider", w.settings.Name, "key", key, "id", id)
				p.state.SubmitTaken(key, id, now)
			case now.Sub(a.Asked) >= findFor:
				p.Log.Info("not found", "provider", w.settings.Name, "key", key)
				text := "the outer system has no job of this name"
				if a.OuterText != "" {
					text = a.OuterText
				}
				p.state.NotFound(key, text, now)
			}
		}
	})
}

// ask asks for the status of all allocations of a provider, in one question.
func (p *Provisioner) ask(ctx context.Context, name string, w *providerWorker, now time.Time) {
	var keys, ids []string
	for _, a := range p.state.Living(name) {
		if a.OuterID != "" {
			keys, ids = append(keys, a.Key), append(ids, a.OuterID)
		}
	}
	if len(ids) == 0 {
		return
	}
	w.askedAt = now
	p.start(ctx, w, func(ctx context.Context) func() {
		answers, err := w.system.Status(ctx, ids)
		if err == nil {
			err = w.readEnds(ctx, keys, ids, answers)
		} else if answers = map[string]plan.OuterStatus{}; w.readEnds(ctx, keys, ids, answers) != nil {
			clear(answers)
		}
		var remnants []string
		for id, s := range answers {
			if s.IsRemnant {
				remnants = append(remnants, id)
			}
		}
		if len(remnants) > 0 {
			err = errors.Join(err, w.system.Cancel(ctx, remnants))
		}
		return func() {
			if err != nil { // but some scripts may have said that they end
				p.Log.Warn("status", "provider", name, "error", err)
				p.state.StatusFailed(name, err.Error(), time.Now())
				p.foldEnds(name, w, keys, ids, answers)
				return
			}
			p.state.StatusAnswered(name, keys, answers, time.Now())
			p.removeTokens(name, w, keys)
		}
	})
}

// readEnds adds to the answers of an outer system how those allocations have ended that
// do not run. Their scripts have written it down.
func (w *providerWorker) readEnds(ctx context.Context, keys, ids []string,
	answers map[string]plan.OuterStatus) error {
	var files []string
	byFile := map[string]string{}
	for i, id := range ids {
		if s, ok := answers[id]; !ok || s.State == plan.OuterEnded {
			name := endFile(keys[i])
			files = append(files, name)
			byFile[name] = id
		}
	}
	if len(files) == 0 {
		return nil
	}
	err := w.resolveDir(ctx)
	if err != nil {
		return err
	}
	statuses, err := driver.Shell{Via: w.settings.Via}.ReadNumbers(ctx, w.dir, files)
	for name, status := range statuses {
		s := answers[byFile[name]]
		s.ID, s.State, s.Succeeded = byFile[name], plan.OuterEnded, status == 0
		if s.Text == "" || status != 0 {
			s.Text = strings.TrimPrefix(fmt.Sprintf("%s, exit status %d", s.Text, status), ", ")
		}
		answers[byFile[name]] = s
	}
	if failed := (*driver.ExitError)(nil); errors.As(err, &failed) {
		return nil // somebody has removed the directory
	}
	return err
}

// removeTokens removes the tokens of allocations that have just ended.
func (p *Provisioner) removeTokens(name string, w *providerWorker, keys []string) {
	var files []string
	for _, key := range keys {
		if a := p.state.Allocations[key]; a != nil && a.State == plan.Ended {
			p.Log.Info("ended", "provider", name, "key", key, "outcome", string(a.Outcome), "reason", a.Reason)
			files = append(files, tokenFile(key), endFile(key))
		}
	}
	if len(files) == 0 || w.dir == "" || w.busy {
		return
	}
	p.start(context.Background(), w, func(ctx context.Context) func() {
		err := driver.Shell{Via: w.settings.Via}.RemoveFiles(ctx, w.dir, files...)
		return func() {
			if err != nil {
				p.Log.Warn("tokens of ended allocations", "provider", name, "error", err)
			}
		}
	})
}
