package main

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fakeMachines is many machines that exist only as ads in the collector. Their ads come
// from this program, each as long as those of a startd, with eight claims. They are full,
// so nothing is ever granted on one.
type fakeMachines struct {
	machines    int
	stopUpdates func() error // ends their updates
}

const (
	fakeLease = 10 * time.Minute
	// time between two updates of one machine, like those of an idle startd
	fakeUpdateInterval = time.Minute
)

// advertiseFakes advertises machines at the pool's collector, and sends updates of one
// after the other until they are stopped.
func (b *poolBencher) advertiseFakes(machines int) (*fakeMachines, error) {
	conn, err := rpc.Dial("unix:"+filepath.Join(b.pool.Dir, "run", "collector.sock"), nil, peer.Collector)
	if err != nil {
		return nil, err
	}
	stream, err := wire.NewCollectorClient(conn).Advertise(b.ctx)
	if err != nil {
		conn.Close()
		return nil, rpc.FromStatus(err)
	}
	send := func(i int, sequence uint64) error {
		if err := stream.Send(fakeMachineAd(i, sequence)); err != nil {
			return rpc.FromStatus(err)
		}
		_, err := stream.Recv()
		return rpc.FromStatus(err)
	}
	for i := range machines {
		if err := send(i, 1); err != nil {
			conn.Close()
			return nil, err
		}
	}
	quit, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(fakeUpdateInterval / time.Duration(machines))
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
				if err := send(n%machines, uint64(n/machines)+2); err != nil {
					ended <- err
					return
				}
			case <-quit:
				ended <- nil
				return
			}
		}
	}()
	return &fakeMachines{machines, func() error {
		close(quit)
		err := <-ended
		conn.Close()
		return err
	}}, nil
}

// fakeMachineAd returns the ad of a machine, by number.
func fakeMachineAd(i int, sequence uint64) *wire.AdUpdate {
	name, began := fmt.Sprintf("node%06d", i), time.Now().Unix()-int64(i%5000)
	var claims, more strings.Builder
	for k := range 8 {
		fmt.Fprintf(&claims,
			`[Id = %d; Owner = "user%d"; Band = "batch"; Cpus = 2; Memory = 4096; Since = %d; Ends = %d; Job = "%d[%d].s"],`,
			k+1, k, began, began+5000+int64(i*13+k*997)%90_000, i, k)
	}
	for k := range 30 {
		fmt.Fprintf(&more, `Attribute%d = "value %d of %d"; `, k, i%7, k)
	}
	return &wire.AdUpdate{
		Type: "Machine", Name: name, Sequence: sequence, Started: 1, LeaseMs: uint32(fakeLease.Milliseconds()),
		Private: map[string]string{"GrantKey": hex.EncodeToString(make([]byte, 32))},
		Ad: fmt.Sprintf(`[MyType = "Machine"; Name = "%s"; MyAddress = "unix:/nowhere"; Arch = "X86_64"; OpSys = "LINUX"; Generation = %d; Rack = "r%d"; Tags = "%s";
			Cpus = 0; TotalCpus = 16; Memory = 32768; TotalMemory = 65536; Disk = 1048576; TotalDisk = 1048576; LoadAvg = %d.5;
			Start = TARGET.RequestCpus <= TotalCpus && LoadAvg < 999; Requirements = Start; %s Claims = {%s}]`,
			name, i%10, i%40, []string{"fast,new", "slow"}[i%2], sequence%100, more.String(),
			strings.TrimSuffix(claims.String(), ",")),
	}
}
