package collector

import (
	"context"
	"time"

	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// streamAds maps type and name of a stream's ads in the store to their last update.
type streamAds map[[2]string]adstore.AdUpdate

// addUpdate applies an update and its outcome. The number of ads is bounded by the
// store's bound for a node; further ones are ignored.
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

// withdrawAds removes the ads of a peer whose certificate was revoked. Otherwise its
// machine would be offered, and shown, until the lease expires. If the node has joined
// again meanwhile, its daemons have started later, and their ads stay.
func (s *grpcService) withdrawAds(ctx context.Context, peer peer.Peer, ads streamAds) {
	if peer.Serial == "" || s.isRevoked == nil || !s.isRevoked(peer.Serial) {
		return
	}
	for _, u := range ads {
		u.Invalidate = true
		// The stream has ended, and its context with it. An error means that the
		// collector stops, too.
		_ = s.storeLoop.runInLoop(context.WithoutCancel(ctx), func() { _, _ = s.storeLoop.store.Update(time.Now(), u) })
	}
}
