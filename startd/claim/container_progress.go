package claim

import (
	"strings"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/wire"
)

// containerProgress tells the schedd of an attempt how far its container image or package
// is. The attempt waits for it.
type containerProgress struct {
	runner  containerizer
	attempt *Attempt
	digest  store.Digest
	stop    chan struct{} // closed by end
	stopped chan struct{} // closed when nothing more is reported

	mu    sync.Mutex
	waits string // why the image cannot be fetched now
}

// containerProgressInterval is how often progress is reported. An image that is here
// already is not.
const containerProgressInterval = time.Second

func newContainerProgress(h containerizer, a *Attempt, m contentMount) *containerProgress {
	p := &containerProgress{runner: h, attempt: a, digest: m.Digest,
		stop: make(chan struct{}), stopped: make(chan struct{})}
	go p.run()
	return p
}

func (p *containerProgress) run() {
	defer close(p.stopped)
	tick := time.NewTicker(containerProgressInterval)
	defer tick.Stop()
	reported := false
	for {
		select {
		case <-tick.C:
			reported = true
			p.report(false)
		case <-p.stop:
			if reported {
				p.report(true)
			}
			return
		}
	}
}

// setWaits notes why the image cannot be fetched now.
func (p *containerProgress) setWaits(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = why
}

// end says that the attempt waits no longer.
func (p *containerProgress) end() {
	close(p.stop)
	<-p.stopped
}

func (p *containerProgress) report(done bool) {
	m := p.runner.machine
	have, size := m.containers.Progress(p.digest)
	p.mu.Lock()
	why := p.waits
	p.mu.Unlock()
	if have > 0 && size > have {
		why = "" // it goes on
	}
	m.host.Post(ContainerEvent{p.runner.id, p.attempt.id, &wire.ContainerProgress{
		Attempt: wire.FromAttempt(p.attempt.id), Bytes: have, Total: size,
		Waits: strings.ToValidUTF8(why, ""), Done: done}})
}
