package rpc

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"sync"
	"time"
)

// lookEvery is how often it is looked whether the certificates of those who are connected still hold. A list of revoked certificates takes effect that
// long after it has come.
const lookEvery = time.Second

// live are the connections of an identity. TLS looks at a certificate once, at the beginning; a connection lasts for weeks. Somebody looks as long as
// there is one, and nobody afterwards.
type live struct {
	mu      sync.Mutex
	conns   map[*watched]struct{}
	looking bool
}

// watched is a connection whose peer's certificate may stop to hold.
type watched struct {
	*tls.Conn
	leaf *x509.Certificate
	of   *Identity
}

// watch hangs up on a peer as soon as its certificate does not hold any more.
func (id *Identity) watch(conn *tls.Conn, leaf *x509.Certificate) net.Conn {
	if id.Holds == nil {
		return conn
	}
	w := &watched{conn, leaf, id}
	id.live.mu.Lock()
	defer id.live.mu.Unlock()
	if id.live.conns == nil {
		id.live.conns = map[*watched]struct{}{}
	}
	id.live.conns[w] = struct{}{}
	if !id.live.looking {
		id.live.looking = true
		time.AfterFunc(lookEvery, id.look)
	}
	return w
}

// look is called every lookEvery while there are connections.
func (id *Identity) look() {
	if id.Refresh != nil {
		id.Refresh()
	}
	id.live.mu.Lock()
	cut := map[*watched]error{}
	for w := range id.live.conns {
		if err := id.Holds(w.leaf); err != nil {
			cut[w] = err
			delete(id.live.conns, w)
		}
	}
	if id.live.looking = len(id.live.conns) > 0; id.live.looking {
		time.AfterFunc(lookEvery, id.look)
	}
	id.live.mu.Unlock()
	for w, err := range cut {
		slog.Warn("hung up on a peer", "peer", w.leaf.Subject.CommonName, "address", w.RemoteAddr().String(), "why", err)
		// The connection itself and not TLS, which would say goodbye first and wait for who does not listen.
		w.NetConn().Close()
	}
}

// Close closes the connection and forgets it.
func (w *watched) Close() error {
	w.of.live.mu.Lock()
	delete(w.of.live.conns, w)
	w.of.live.mu.Unlock()
	return w.Conn.Close()
}
