package caclient

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/pki"
)

// How often a node asks.
const (
	// a revoked node is out within a minute, with what the others need to read the list
	revocationInterval = 15 * time.Second
	renewRetry         = time.Minute // where the try before failed
)

// Authority is what a node asks of its pool's authority. Both requests and answers are as
// the wire has them; an answer that is empty: nothing is newer.
type Authority interface {
	Renew(ctx context.Context, request []byte) (certificate []byte, err error)
	Revoked(ctx context.Context, have int64) (list []byte, err error)
}

// CertRenewer keeps a node's certificate and its list of revoked ones fresh, in the files
// where the daemons of the node read them.
type CertRenewer struct {
	Files     *config.TLSFiles
	Authority Authority
	Log       *slog.Logger

	ca         *x509.Certificate
	notBefore  time.Time // when the certificate was made, and when it ends
	notAfter   time.Time
	listNumber int64     // of the list
	nextTry    time.Time // to renew
	// how often in a row the authority did not answer; the first may be because it has
	// just been started, too
	failures int
}

// Run asks until ctx ends. An authority that does not answer is asked again; the node
// works on meanwhile.
func (k *CertRenewer) Run(ctx context.Context) {
	if err := k.loadFiles(); err != nil {
		k.Log.Error("certificate cannot be kept fresh", "err", err)
		return
	}
	for {
		k.fetchRevocations(ctx)
		if now := time.Now(); k.renewalDue(now) {
			k.nextTry = now.Add(renewRetry)
			k.renewCert(ctx)
		}
		// Nodes that were started at the same time do not ask at the same time for ever.
		wait := time.NewTimer(revocationInterval*9/10 + rand.N(revocationInterval/10))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// loadFiles takes in what the node has.
func (k *CertRenewer) loadFiles() (err error) {
	if k.ca, err = pki.ReadCertificate(k.Files.CA); err != nil {
		return err
	}
	leaf, err := pki.ReadCertificate(k.Files.Certificate)
	if err != nil {
		return err
	}
	k.notBefore, k.notAfter = leaf.NotBefore, leaf.NotAfter
	list, err := pki.ReadRevocations(k.Files)
	if err != nil {
		k.Log.Warn("the list of revoked certificates that is here is not used", "err", err)
	} else if list != nil {
		k.listNumber = list.Number.Int64()
	}
	return nil
}

// renewalDue reports whether two thirds of the certificate's life are over.
func (k *CertRenewer) renewalDue(now time.Time) bool {
	return !now.Before(k.notBefore.Add(k.notAfter.Sub(k.notBefore)/3*2)) && !now.Before(k.nextTry)
}

func (k *CertRenewer) renewCert(ctx context.Context) {
	request, err := pki.Request(k.Files.Key)
	var der []byte
	if err == nil {
		der, err = k.Authority.Renew(ctx, request)
	}
	if err == nil {
		err = pki.SaveCertificate(k.Files, der)
	}
	if err == nil {
		err = k.loadFiles()
	}
	switch {
	case err != nil && ctx.Err() == nil:
		k.Log.Warn("certificate not renewed", "ends", k.notAfter, "err", err)
	case err == nil:
		k.Log.Info("certificate renewed", "ends", k.notAfter)
	}
}

// fetchRevocations gets the newest list. An older one than the node has is not taken,
// whoever signed it.
func (k *CertRenewer) fetchRevocations(ctx context.Context) {
	der, err := k.Authority.Revoked(ctx, k.listNumber)
	if err == nil && len(der) > 0 {
		err = k.writeFiles(der)
	}
	switch {
	case ctx.Err() != nil:
	case err == nil && k.failures > 1:
		k.failures = 0
		k.Log.Info("the authority answers again")
	case err == nil:
		k.failures = 0
	default:
		if k.failures++; k.failures == 2 {
			k.Log.Warn("no news of revoked certificates", "err", err)
		}
	}
}

func (k *CertRenewer) writeFiles(der []byte) error {
	list, err := pki.ParseRevocations(der, k.ca)
	if err != nil {
		return err
	}
	if number := list.Number.Int64(); number > k.listNumber {
		if err := pki.SaveRevocations(k.Files, der); err != nil {
			return err
		}
		k.listNumber = number
		k.Log.Info("new list of revoked certificates", "number", number, "certificates",
			len(list.RevokedCertificateEntries))
		return nil
	}
	return fmt.Errorf("list of revoked certificates: %w: the authority has sent number %v, and this node has %d",
		roost.Stale, list.Number, k.listNumber)
}
