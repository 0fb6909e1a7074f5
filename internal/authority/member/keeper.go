package member

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/pki"
)

// How often a node asks.
const (
	listEvery  = 15 * time.Second // a revoked node is out within a minute, with what the others need to read the list
	renewEvery = time.Minute      // where the try before failed
)

// Authority is what a node asks of its pool's authority. Both requests and answers are as the wire has them; an answer that is empty: nothing is newer.
type Authority interface {
	Renew(ctx context.Context, request []byte) (certificate []byte, err error)
	Revoked(ctx context.Context, have int64) (list []byte, err error)
}

// Keeper keeps a node's certificate and its list of revoked ones fresh, in the files where the daemons of the node read them.
type Keeper struct {
	Files     *config.TLS
	Authority Authority
	Log       *slog.Logger

	ca      *x509.Certificate
	from    time.Time // when the certificate was made, and when it ends
	until   time.Time
	number  int64     // of the list
	nextTry time.Time // to renew
	failed  int       // how often in a row the authority did not answer; the first may be because it has just been started, too
}

// Run asks until ctx ends. An authority that does not answer is asked again; the node works on meanwhile.
func (k *Keeper) Run(ctx context.Context) {
	if err := k.read(); err != nil {
		k.Log.Error("certificate cannot be kept fresh", "err", err)
		return
	}
	for {
		k.fetch(ctx)
		if now := time.Now(); k.due(now) {
			k.nextTry = now.Add(renewEvery)
			k.renew(ctx)
		}
		// Nodes that were started at the same time do not ask at the same time for ever.
		wait := time.NewTimer(listEvery*9/10 + rand.N(listEvery/10))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// read takes in what the node has.
func (k *Keeper) read() (err error) {
	if k.ca, err = pki.ReadCertificate(k.Files.CA); err != nil {
		return err
	}
	leaf, err := pki.ReadCertificate(k.Files.Certificate)
	if err != nil {
		return err
	}
	k.from, k.until = leaf.NotBefore, leaf.NotAfter
	list, err := pki.ReadRevocations(k.Files)
	if err != nil {
		k.Log.Warn("the list of revoked certificates that is here is not used", "err", err)
	} else if list != nil {
		k.number = list.Number.Int64()
	}
	return nil
}

// due reports whether two thirds of the certificate's life are over.
func (k *Keeper) due(now time.Time) bool {
	return !now.Before(k.from.Add(k.until.Sub(k.from)/3*2)) && !now.Before(k.nextTry)
}

func (k *Keeper) renew(ctx context.Context) {
	request, err := pki.Request(k.Files.Key)
	var der []byte
	if err == nil {
		der, err = k.Authority.Renew(ctx, request)
	}
	if err == nil {
		err = pki.KeepCertificate(k.Files, der)
	}
	if err == nil {
		err = k.read()
	}
	switch {
	case err != nil && ctx.Err() == nil:
		k.Log.Warn("certificate not renewed", "ends", k.until, "err", err)
	case err == nil:
		k.Log.Info("certificate renewed", "ends", k.until)
	}
}

// fetch gets the newest list. An older one than the node has is not taken, whoever signed it.
func (k *Keeper) fetch(ctx context.Context) {
	der, err := k.Authority.Revoked(ctx, k.number)
	if err == nil && len(der) > 0 {
		err = k.keep(der)
	}
	switch {
	case ctx.Err() != nil:
	case err == nil && k.failed > 1:
		k.failed = 0
		k.Log.Info("the authority answers again")
	case err == nil:
		k.failed = 0
	default:
		if k.failed++; k.failed == 2 {
			k.Log.Warn("no news of revoked certificates", "err", err)
		}
	}
}

func (k *Keeper) keep(der []byte) error {
	list, err := pki.ParseRevocations(der, k.ca)
	if err != nil {
		return err
	}
	if number := list.Number.Int64(); number > k.number {
		if err := pki.KeepRevocations(k.Files, der); err != nil {
			return err
		}
		k.number = number
		k.Log.Info("new list of revoked certificates", "number", number, "certificates", len(list.RevokedCertificateEntries))
		return nil
	}
	return fmt.Errorf("list of revoked certificates: %w: the authority has sent number %v, and this node has %d", roost.Stale, list.Number, k.number)
}
