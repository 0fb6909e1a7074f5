package startd

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/release"
)

// reservedDisk is the part of the disk that is left to the system, in percent.
const reservedDisk = 5

// measureMachine finds out what the machine has, where the config does not say it. Disk
// is what is free below dir at the start.
func measureMachine(dir string, given roost.Resources) (roost.Resources, error) {
	r := given
	if r.CPU == 0 {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			return r, fmt.Errorf("count the processors: %w", err)
		}
		r.CPU = roost.MilliCPU(set.Count()) * 1000
	}
	if r.Memory == 0 {
		var info unix.Sysinfo_t
		if err := unix.Sysinfo(&info); err != nil {
			return r, fmt.Errorf("measure the memory: %w", err)
		}
		r.Memory = roost.Bytes(uint64(info.Totalram)*uint64(info.Unit)) / roost.MiB * roost.MiB
	}
	if r.Disk == 0 {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err != nil {
			return r, fmt.Errorf("measure the disk below %s: %w", dir, err)
		}
		r.Disk = roost.Bytes(fs.Bavail*uint64(fs.Bsize)) / 100 * (100 - reservedDisk) / roost.KiB * roost.KiB
	}
	if r.IO.Network == 0 {
		r.IO.Network = linkSpeed("/proc/net/route", "/sys/class/net")
	}
	return r, nil
}

// linkSpeed returns the speed of the link with the default route of IPv4. It is 0 if the
// kernel does not know it, as of a virtual link.
func linkSpeed(routes, links string) roost.ByteRate {
	text, _ := os.ReadFile(routes)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // the interface, the destination, the gateway and more
		if len(f) < 3 || f[1] != "00000000" || strings.ContainsRune(f[0], '/') {
			continue
		}
		speed, _ := os.ReadFile(filepath.Join(links, f[0], "speed"))
		mbits, err := strconv.ParseInt(strings.TrimSpace(string(speed)), 10, 32)
		if err == nil && mbits > 0 {
			return roost.ByteRate(mbits) * 1_000_000 / 8
		}
	}
	return 0
}

// loadAverage is the kernel's average over one minute, 0 when it cannot be read.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// machineAd is what the machine says of itself that does not depend on claims. The error
// names what the config has wrong.
func machineAd(node *config.Node, own *config.StartdSettings, boot, address string) (*classad.Ad, error) {
	ad := classad.New()
	ad.SetString(roost.AttrMyType, "Machine")
	ad.SetString(roost.AttrName, own.Name)
	ad.SetString(roost.AttrMachine, node.Name)
	ad.SetString(roost.AttrMyAddress, address)
	release.Describe(ad)
	ad.SetString(roost.AttrArch, architecture())
	ad.SetString(roost.AttrOpSys, strings.ToUpper(runtime.GOOS))
	ad.SetString(roost.AttrFileSystemDomain, node.FileSystemDomain)
	ad.SetString(roost.AttrBootID, boot)
	if slots := own.Accounts.Users == config.SlotUser && os.Geteuid() == 0; !slots || len(own.Accounts.Trust) == 0 &&
		node.FileSystemDomain == node.Name {
		ad.SetBool(roost.AttrSlotUsers, slots)
	}
	if own.Accounts.Guests != "" && own.Pilot == nil {
		ad.SetBool(peer.AttrAcceptsGuests, true)
	}
	ad.SetInt(roost.AttrDaemonStart, time.Now().Unix())
	node.DescribeMetrics(ad, own.Name)
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		ad.SetString("KernelVersion", unix.ByteSliceToString(name.Release[:]))
	}
	start := cmp.Or(own.Start, "true")
	if own.HasOwnerPolicy() { // its policy judges
		start = "true"
	}
	expressions := [][2]string{
		{roost.AttrStart, start}, {roost.AttrRank, cmp.Or(own.Rank, "0")}, {roost.AttrRequirements, roost.AttrStart},
	}
	if p := own.Pilot; p != nil {
		expressions[2][1] = p.Owner.Requirements()
		describePilot(ad, p)
	}
	for _, attr := range slices.Sorted(maps.Keys(own.Attributes)) {
		expressions = append(expressions, [2]string{attr, own.Attributes[attr]})
	}
	for _, e := range expressions {
		if err := ad.SetExpr(e[0], e[1]); err != nil {
			return nil, fmt.Errorf("startd %s: attribute %s: %w: %w", own.Name, e[0], roost.BadConfig, err)
		}
	}
	return ad, nil
}

// describePilot says in the ad of a pilot whose it is, and how long.
func describePilot(ad *classad.Ad, p *config.PilotSettings) {
	ad.SetString(roost.AttrPilotOwner, p.Owner.String())
	if !p.PoolUntil.IsZero() {
		ad.SetInt(roost.AttrPilotUntil, p.PoolUntil.Unix())
	}
	for name, text := range map[string]string{roost.AttrPilotProvider: p.Provider, roost.AttrPilotKey: p.Key,
		roost.AttrPilotHost: p.Host} {
		if text != "" {
			ad.SetString(name, text)
		}
	}
}

// architecture is HTCondor's word for the machine's architecture.
func architecture() string {
	switch runtime.GOARCH {
	case "amd64":
		return "X86_64"
	case "arm64":
		return "AARCH64"
	}
	return strings.ToUpper(runtime.GOARCH)
}
