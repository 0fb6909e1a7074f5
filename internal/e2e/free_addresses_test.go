package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// freeAddresses returns n addresses with free ports in a row, for a server that binds its
// port later. They are below the ports that the kernel gives to connections and to
// servers that ask for any (ip(7), ip_local_port_range): it may give such a port away
// while nobody is bound to it.
func freeAddresses(t *testing.T, n int) []string {
	t.Helper()
	for range 100 {
		first, addresses, err := 10000+rand.IntN(32768-10000-n), []string(nil), error(nil)
		for i := 0; i < n && err == nil; i++ {
			var l net.Listener
			if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+i)); err == nil {
				defer l.Close()
				addresses = append(addresses, l.Addr().String())
			}
		}
		if err == nil {
			return addresses
		}
	}
	t.Fatalf("there are no %d free ports in a row", n)
	return nil
}
