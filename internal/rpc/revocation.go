package rpc

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"sync"
	"time"
)

// revocationInterval is how often it is looked whether the certificates of those who are
// connected still hold. A list of revoked certificates takes effect that long after it
// has come.
const revocationInterval = time.Second

// revocationWatcher are the connections of an identity. TLS looks at a certificate once,
// at the beginning; a connection lasts for weeks. Somebody looks as long as there is one,
// and nobody afterwards.
type revocationWatcher struct {
	mu       sync.Mutex
	conns    map[*revocableConn]struct{}
	checking bool
}

// revocableConn is a connection whose peer's certificate may stop to hold.
type revocableConn struct {
	*tls.Conn
	leaf     *x509.Certificate
	identity *Identity
}

// watchConn hangs up on a peer as soon as its certificate does not hold any more.
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
		slog.Warn("hung up on a peer", "peer", w.leaf.Subject.CommonName, "address", w.RemoteAddr().String(),
			"why", err)
		// The connection itself and not TLS, which would say goodbye first and wait for
		// who does not listen.
		w.NetConn().Close()
	}
}

// Close closes the connection and forgets it.
func (w *revocableConn) Close() error {
	w.identity.revocations.mu.Lock()
	delete(w.identity.revocations.conns, w)
	w.identity.revocations.mu.Unlock()
	return w.Conn.Close()
}
