package transfer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/roost-batch/roost"
)

// The naive way sends each attempt its input files, so that an array of 1,000 tasks with
// an input of 1 GB sends a terabyte. A startd has a cache of input files, and this is
// what the schedd knows of those caches: not all that they have, and sometimes what they
// no longer have. Then the machine says so, and gets the files.
//
// While the first task of an array sends its files to a machine, the others there wait.

// Bounds of what is known of one machine. What is forgotten is sent again.
const (
	maxCachedFiles = 64
	maxFirstSends  = 64
)

// nodeCaches is what is known of the input caches of all machines.
type nodeCaches struct {
	mu    sync.Mutex
	nodes map[string]*nodeCache
	// files that were sent before, to any machine, those sent last last
	recent recentFiles
}

// nodeCache is what is known of one machine.
type nodeCache struct {
	files recentFiles
	sends map[roost.JobID]*firstSend
}

// cachedFileID identifies a version of a file of a user of this host.
type cachedFileID [sha256.Size]byte

func newCachedFileID(uid uint32, version string) cachedFileID {
	return sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", uid, version))
}

// recentFiles has the digests of the transfers of files, up to a bound.
type recentFiles struct {
	sums  map[cachedFileID][]byte
	order []cachedFileID // those added first first
}

func (f *recentFiles) add(id cachedFileID, sum []byte, most int) {
	if f.sums == nil {
		f.sums = map[cachedFileID][]byte{}
	}
	if _, known := f.sums[id]; !known {
		if len(f.order) >= most {
			delete(f.sums, f.order[0])
			f.order = f.order[1:]
		}
		f.order = append(f.order, id)
	}
	f.sums[id] = sum
}

func newNodeCaches() *nodeCaches { return &nodeCaches{nodes: map[string]*nodeCache{}} }

// node returns what is known of a machine. c.mu is held.
func (c *nodeCaches) node(name string) *nodeCache {
	n := c.nodes[name]
	if n == nil {
		n = &nodeCache{sends: map[roost.JobID]*firstSend{}}
		c.nodes[name] = n
	}
	return n
}

// forget forgets the files of a machine.
func (c *nodeCaches) forget(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.node(node).files = recentFiles{}
}

// firstSend is the transfer of input files to the first task of a job on a machine.
type firstSend struct {
	caches *nodeCaches
	node   string
	job    roost.JobID
	ended  chan struct{} // closed at its end
	done   bool          // the machine has the files
}

// beginFirst returns the first transfer of a job to a machine, which the caller ends. It
// waits for one that is under way, and returns nil after it.
func (c *nodeCaches) beginFirst(ctx context.Context, node string, job roost.JobID) (*firstSend, error) {
	for {
		c.mu.Lock()
		n := c.node(node)
		s := n.sends[job]
		if s == nil {
			n.dropDone()
			s = &firstSend{caches: c, node: node, job: job, ended: make(chan struct{})}
			n.sends[job] = s
			c.mu.Unlock()
			return s, nil
		}
		done := s.done
		c.mu.Unlock()
		if done {
			return nil, nil
		}
		select {
		case <-s.ended: // and if it has failed this one is the first
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// dropDone makes room for a transfer.
func (n *nodeCache) dropDone() {
	for job, s := range n.sends {
		if len(n.sends) < maxFirstSends {
			return
		}
		if s.done {
			delete(n.sends, job)
		}
	}
}

// end ends the transfer. The others go on: all at once, or, if the machine does not have
// the files, one of them first.
func (s *firstSend) end(done bool) {
	if s == nil {
		return
	}
	s.caches.mu.Lock()
	defer s.caches.mu.Unlock()
	select {
	case <-s.ended:
		return
	default:
	}
	if s.done = done; !done {
		delete(s.caches.node(s.node).sends, s.job)
	}
	close(s.ended)
}

// inputCacheView is what is known of the cache of a machine, for one transfer. It
// implements userfiles.ReceiverCache.
type inputCacheView struct {
	caches *nodeCaches
	node   string
	uid    uint32
	array  bool // the files are of a job of several tasks
	sent   map[cachedFileID][]byte
}

func (c *nodeCaches) view(node string, uid uint32, array bool) *inputCacheView {
	return &inputCacheView{c, node, uid, array, map[cachedFileID][]byte{}}
}

// Find implements userfiles.ReceiverCache.
func (v *inputCacheView) Find(version string) (sum []byte, cacheable bool) {
	id := newCachedFileID(v.uid, version)
	v.caches.mu.Lock()
	defer v.caches.mu.Unlock()
	_, again := v.caches.recent.sums[id]
	return v.caches.node(v.node).files.sums[id], v.array || again
}

// Sent implements userfiles.ReceiverCache.
func (v *inputCacheView) Sent(version string, sum []byte) {
	v.sent[newCachedFileID(v.uid, version)] = sum
}

// commit notes that the machine has what was sent.
func (v *inputCacheView) commit() {
	v.caches.mu.Lock()
	defer v.caches.mu.Unlock()
	n := v.caches.node(v.node)
	for id, sum := range v.sent {
		if _, again := v.caches.recent.sums[id]; v.array || again {
			n.files.add(id, sum, maxCachedFiles)
		}
		v.caches.recent.add(id, nil, maxRecentFiles)
	}
}

// maxRecentFiles bounds the files that are known to have been sent before.
const maxRecentFiles = 4096
