package flock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// How often a membership is looked after.
const (
	checkInterval = 15 * time.Second // whether the agreement is in force, and who is revoked there
	callTimeout   = 10 * time.Second
	askInterval   = 5 * time.Minute // whether the host, which does not answer, still knows this schedd
)

// Host is a pool that lends machines, as this schedd is known there.
type Host struct {
	Pool        string // the name of the pool here
	As          string // the name of this pool there
	Schedd      string // the name of this schedd there
	Negotiators []string
	Identity    *rpc.Identity
}

// User returns the name at the host of a user of this schedd.
func (h *Host) User(owner string) string { return peer.GuestUser(owner, h.As) }

// Group returns the accounting group of this pool at the host.
func (h *Host) Group() string { return peer.GuestGroup(h.As) }

// Membership gets and renews the certificate of a schedd at a host pool.
type Membership struct {
	Pool      string        // name of the host pool here
	Dir       string        // of its files
	Authority string        // address of the own pool's authority
	Identity  *rpc.Identity // in the own pool
	Log       *slog.Logger
	// Joined is called with each certificate, Left with the reason when the agreement has
	// ended.
	Joined func(Host)
	Left   func(reason error)

	host   *Host
	number int64 // of the list of revoked certificates of the host
	last   string
	asked  time.Time // when a host that did not answer was last asked for a new certificate
}

func (m *Membership) files() *config.TLSFiles {
	return &config.TLSFiles{CA: filepath.Join(m.Dir, "ca.pem"), Certificate: filepath.Join(m.Dir, "cert.pem"),
		Key: filepath.Join(m.Dir, "key.pem")}
}

// Run looks after the membership until ctx ends.
func (m *Membership) Run(ctx context.Context) {
	for {
		err := m.check(ctx)
		if ctx.Err() != nil {
			return
		}
		m.report(err)
		wait := time.NewTimer(checkInterval)
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// report logs how the membership is, at each change.
func (m *Membership) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == m.last {
		return
	}
	if m.last = text; err != nil {
		m.Log.Warn("no machines of a host pool", "pool", m.Pool, "err", err)
	} else {
		m.Log.Info("a host pool lends machines", "pool", m.Pool, "as", m.host.Schedd)
	}
}

// check asks the own authority whether the agreement is in force, and gets a certificate
// where one is due.
func (m *Membership) check(ctx context.Context) error {
	if m.Identity == nil || m.Authority == "" {
		return fmt.Errorf("flock: %w: the nodes of this pool have no certificates of an authority", roost.BadConfig)
	}
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return err
	}
	request, err := pki.Request(m.files().Key)
	if err != nil {
		return err
	}
	voucher, err := m.vouch(ctx, request)
	if errors.Is(err, roost.PermissionDenied) || errors.Is(err, roost.NotFound) {
		m.leave(err)
	}
	if err != nil {
		return err
	}
	if m.renewalDue() {
		if err := m.certify(ctx, voucher, request); err != nil {
			if errors.Is(err, roost.PermissionDenied) {
				m.leave(err)
			}
			return err
		}
	}
	if err := m.fetchRevocations(ctx, voucher.GetAddress()); err == nil || time.Since(m.asked) < askInterval {
		return nil
	}
	// The host may have revoked the certificate: whoever gets a new one is told.
	m.asked = time.Now()
	if err := m.certify(ctx, voucher, request); errors.Is(err, roost.PermissionDenied) {
		m.leave(err)
		return err
	}
	return nil
}

// leave ends a membership.
func (m *Membership) leave(reason error) {
	if m.host != nil {
		m.host = nil
		os.Remove(m.files().Certificate)
	}
	m.Left(reason)
}

// renewalDue reports whether there is no certificate, or half of its validity is over.
func (m *Membership) renewalDue() bool {
	if m.host == nil {
		return true
	}
	leaf, err := pki.ReadCertificate(m.files().Certificate)
	return err != nil || time.Until(leaf.NotAfter) < leaf.NotAfter.Sub(leaf.NotBefore)/2
}

func (m *Membership) vouch(ctx context.Context, request []byte) (*wire.VouchGuestReply, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := rpc.Dial(m.Authority, m.Identity, peer.Authority)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	reply, err := wire.NewAuthorityClient(conn).VouchGuest(ctx, &wire.VouchGuestRequest{Peer: m.Pool, Request: request})
	if err != nil {
		return nil, fmt.Errorf("authority of this pool: %w", rpc.FromStatus(err))
	}
	return reply, nil
}

// certify gets a certificate of the host.
func (m *Membership) certify(ctx context.Context, v *wire.VouchGuestReply, request []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	authority, err := pki.ParseAuthority(v.GetAuthority())
	if err != nil {
		return err
	}
	if !IsRemote(v.GetAddress()) {
		return fmt.Errorf("authority of %s: %w: %q is no address of another host", m.Pool, roost.Invalid,
			v.GetAddress())
	}
	conn, err := rpc.Dial(v.GetAddress(), pki.PinAuthority(authority), peer.Authority)
	if err != nil {
		return err
	}
	defer conn.Close()
	reply, err := wire.NewAuthorityClient(conn).CertifyGuest(ctx, &wire.CertifyGuestRequest{As: v.GetAs(),
		Voucher: v.GetVoucher(), Signature: v.GetSignature(), Request: request})
	if err != nil {
		return fmt.Errorf("authority of %s: %w", m.Pool, rpc.FromStatus(err))
	}
	if err := pki.SaveAuthority(m.files(), authority); err != nil {
		return err
	}
	if err := pki.SaveCertificate(m.files(), reply.GetCertificate()); err != nil {
		return err
	}
	id, err := pki.Load(m.files())
	if err != nil {
		return err
	}
	h := Host{Pool: m.Pool, As: v.GetAs(), Schedd: id.Name, Identity: id}
	for _, address := range reply.GetNegotiators() {
		if IsRemote(address) {
			h.Negotiators = append(h.Negotiators, address)
		}
	}
	m.host = &h
	m.Joined(h)
	return nil
}

// fetchRevocations gets the list of revoked certificates of the host. A machine that the
// host has excluded is then refused here, too. The error is that of the connection.
func (m *Membership) fetchRevocations(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := rpc.Dial(address, m.host.Identity, peer.Authority)
	if err != nil {
		return err
	}
	defer conn.Close()
	reply, err := wire.NewAuthorityClient(conn).Revoked(ctx, &wire.RevokedRequest{Number: m.number})
	if err != nil || len(reply.GetList()) == 0 {
		return err
	}
	authority, err := pki.ReadCertificate(m.files().CA)
	if err != nil {
		return nil
	}
	list, err := pki.ParseRevocations(reply.GetList(), authority)
	if err != nil || list.Number.Int64() <= m.number {
		m.Log.Warn("a list of revoked certificates is not used", "pool", m.Pool, "err", err)
		return nil
	}
	if err := pki.SaveRevocations(m.files(), reply.GetList()); err != nil {
		m.Log.Warn("a list of revoked certificates is not stored", "pool", m.Pool, "err", err)
		return nil
	}
	m.number = list.Number.Int64()
	return nil
}
