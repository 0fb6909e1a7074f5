package rpc

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"sync"
	"time"
)

// revocationInterval is how often the certificates of connected peers are checked. A list
// of revoked certificates takes effect within this time.
const revocationInterval = time.Second

// revocationWatcher watches the connections of an identity. TLS checks a certificate
// once, at the handshake; a connection lasts for weeks. A timer runs only while there are
// connections.
type revocationWatcher struct {
	mu       sync.Mutex
	conns    map[*revocableConn]struct{}
	checking bool
}

// revocableConn is a connection whose peer's certificate may become invalid.
type revocableConn struct {
	*tls.Conn
	leaf     *x509.Certificate
	identity *Identity
}

// watchConn closes a connection as soon as the peer's certificate is no longer valid.
func (id *Identity) watchConn(conn *tls.Conn, leaf *x509.Certificate) net.Conn {
	if id.CheckValid == nil {
		return conn
	}
	w := &revocableConn{conn, leaf, id}
	id.revocations.mu.Lock()
	defer id.revocations.mu.Unlock()
	if id.revocations.conns == nil {
		id.revocations.conns = map[*revocableConn]struct{}{}
	}
	id.revocations.conns[w] = struct{}{}
	if !id.revocations.checking {
		id.revocations.checking = true
		time.AfterFunc(revocationInterval, id.checkConns)
	}
	return w
}

// checkConns is called every revocationInterval while there are connections.
func (id *Identity) checkConns() {
	if id.Refresh != nil {
		id.Refresh()
	}
	id.revocations.mu.Lock()
	cut := map[*revocableConn]error{}
	for w := range id.revocations.conns {
		if err := id.CheckValid(w.leaf); err != nil {
			cut[w] = err
			delete(id.revocations.conns, w)
		}
	}
	if id.revocations.checking = len(id.revocations.conns) > 0; id.revocations.checking {
		time.AfterFunc(revocationInterval, id.checkConns)
	}
	id.revocations.mu.Unlock()
	for w, err := range cut {
		slog.Warn("closed the connection of a peer",
			"peer", w.leaf.Subject.CommonName, "address", w.RemoteAddr().String(),
			"why", err)
		// Closes the connection itself and not TLS, which would send an alert first and
		// wait for a peer that does not read.
		w.NetConn().Close()
	}
}

// Close closes the connection and stops watching it.
func (w *revocableConn) Close() error {
	w.identity.revocations.mu.Lock()
	delete(w.identity.revocations.conns, w)
	w.identity.revocations.mu.Unlock()
	return w.Conn.Close()
}
