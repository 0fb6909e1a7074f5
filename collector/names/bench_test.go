package names

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// fillZone returns a zone of 100,000 endpoints and the ads of its machines.
func fillZone(b *testing.B, each int) (*Zone, []MachineAd, [][]string) {
	const endpoints = 100_000
	zone := New(Config{Domain: "roost.internal", Cell: "cell"})
	var ads []MachineAd
	var lines [][]string
	for i := range endpoints / each {
		address := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		var list []string
		for j := range each {
			n := i*each + j
			list = append(list, endpointAd([]string{fmt.Sprintf("%d.pool/u%d/s%d", n/100, n/10_000, n/100),
				fmt.Sprintf("%d.1", n%100), "r1", "ready", address.String(), "http=20001"}))
		}
		ad := MachineAd{Name: fmt.Sprint("m", i), Node: fmt.Sprint("m", i), Addresses: []netip.Addr{address},
			Lease: time.Minute, Text: adText(fmt.Sprint("m", i), list)}
		if err := zone.SetMachine(time.Unix(1, 0), zone.ReadMachine(time.Unix(1, 0), ad)); err != nil {
			b.Fatal(err)
		}
		ads, lines = append(ads, ad), append(lines, list)
	}
	return zone, ads, lines
}

// BenchmarkChange measures an ad of which one endpoint has changed. The zone has 100,000
// endpoints and a watch of all of them.
func BenchmarkChange(b *testing.B) {
	for _, each := range []int{10, 100} {
		b.Run(fmt.Sprintf("%d-on-each-machine", each), func(b *testing.B) {
			zone, ads, lines := fillZone(b, each)
			watch := zone.StartWatch(Selection{})
			zone.Take(watch)
			changed := make([]MachineAd, len(ads))
			for i := range ads {
				list := append([]string{}, lines[i]...)
				list[each/2] = list[each/2][:len(list[each/2])-1] + "; Weight = 2 ]"
				changed[i] = ads[i]
				changed[i].Text = adText(ads[i].Name, list)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for n := range b.N {
				i := n % len(ads)
				from := changed
				if n/len(ads)%2 == 1 {
					from = ads
				}
				if err := zone.SetMachine(time.Unix(1, 0), zone.ReadMachine(time.Unix(1, 0), from[i])); err != nil {
					b.Fatal(err)
				}
				if n%512 == 0 {
					zone.Take(watch)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "changes/s")
		})
	}
}

// BenchmarkLookup measures the lookup of a job's addresses among 100 ready tasks.
func BenchmarkLookup(b *testing.B) {
	zone, _, _ := fillZone(b, 100)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if a := zone.Lookup("s7.u0.cell.roost.internal.", IPv4Records, 64, rand.IntN); len(a.Addresses) != 16 {
			b.Fatalf("%d addresses", len(a.Addresses))
		}
	}
}
