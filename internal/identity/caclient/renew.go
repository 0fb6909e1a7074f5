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

// How often a node asks the authority.
const (
	// a revoked node is refused everywhere within a minute, including the time in which
	// the others read the list
	revocationInterval = 15 * time.Second
	renewRetry         = time.Minute // after a failed try
)

// Authority is a pool's authority as a node uses it. Requests and replies are in their
// wire form; an empty reply means that nothing is newer.
type Authority interface {
	Renew(ctx context.Context, request []byte) (certificate []byte, err error)
	Revoked(ctx context.Context, have int64) (list []byte, err error)
}

// CertRenewer renews a node's certificate and fetches the list of revoked ones. It writes
// both to the files from which the daemons of the node read them.
type CertRenewer struct {
	Files     *config.TLSFiles
	Authority Authority
	Log       *slog.Logger

	ca         *x509.Certificate
	notBefore  time.Time // validity of the certificate
	notAfter   time.Time
	listNumber int64     // number of the list
	nextTry    time.Time // when to try the next renewal
	// failures in a row; the first may be because the authority has only just been
	// started, too
	failures int
}

// Run renews until ctx ends. If the authority does not answer, Run tries again; the node
// works on meanwhile.
func (k *CertRenewer) Run(ctx context.Context) {
	if err := k.loadFiles(); err != nil {
		k.Log.Error("certificate cannot be renewed", "err", err)
		return
	}
	for {
		k.fetchRevocations(ctx)
		if now := time.Now(); k.renewalDue(now) {
			k.nextTry = now.Add(renewRetry)
			k.renewCert(ctx)
		}
		// Nodes that were started at the same time must not ask at the same time for
		// ever.
		wait := time.NewTimer(revocationInterval*9/10 + rand.N(revocationInterval/10))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// loadFiles reads the node's certificate and list.
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

// renewalDue reports whether two thirds of the certificate's validity have passed.
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

// fetchRevocations fetches the newest list. A list older than the node's own is refused,
// even if it is signed.
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
			k.Log.Warn("the list of revoked certificates could not be fetched", "err", err)
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
