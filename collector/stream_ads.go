package collector

import (
	"context"
	"time"

	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// streamAds is the last update of each ad of a stream that the store has, by type and
// name.
type streamAds map[[2]string]adstore.AdUpdate

// addUpdate folds an update in. A node has no more ads than the store's bound at a time;
// who goes on to make new ones as fast as they end is not followed.
func (a streamAds) addUpdate(u adstore.AdUpdate, outcome adstore.UpdateOutcome) {
	key := [2]string{u.Type, u.Name}
	switch _, known := a[key]; {
	case outcome == adstore.Removed:
		delete(a, key)
	case (outcome == adstore.Stored || outcome == adstore.Renewed) &&
		(known || len(a) < adstore.DefaultLimits().AdsPerNode):
		u.Ad, u.Private = "", nil
		a[key] = u
	}
}

// withdrawAds takes back what a peer has advertised whose certificate was revoked:
// otherwise its machine would be offered, and shown, until the lease ends. If the node
// has joined anew meanwhile, its daemons have started later, and their ads stay.
func (s *grpcService) withdrawAds(ctx context.Context, peer peer.Peer, told streamAds) {
	if peer.Serial == "" || s.isRevoked == nil || !s.isRevoked(peer.Serial) {
		return
	}
	for _, u := range told {
		u.Invalidate = true
		// The stream has ended, and its context with it. An error says that the collector
		// ends, too.
		_ = s.storeLoop.runInLoop(context.WithoutCancel(ctx), func() { _, _ = s.storeLoop.store.Update(time.Now(), u) })
	}
}
