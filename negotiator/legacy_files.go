package negotiator

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost/negotiator/fairshare"
)

// What a negotiator kept in its directory when there was but one and it had no log. An
// epoch of that time is lower than any of the ledger's, as both began with the time in
// seconds.
const (
	legacyUsageFile = "usage.json"
	legacyEpochFile = "epoch"
)

// readLegacyAccounts returns the accounts that were kept so, if any. Those that make no
// sense are put aside: everybody starts anew, and the negotiator starts.
func readLegacyAccounts(dir string, log *slog.Logger) []fairshare.SubmitterAccount {
	path := filepath.Join(dir, legacyUsageFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	accountant := fairshare.NewAccountant(fairshare.HalfLife)
	if err == nil {
		err = accountant.Load(text)
	}
	if err != nil {
		log.Error("usage of the time before the log is lost, everybody starts anew; the file is kept", "file",
			path+".bad", "err", errors.Join(err, os.Rename(path, path+".bad")))
		return nil
	}
	return accountant.Accounts()
}

// setAsideLegacyFiles puts the old files aside, so that they are not taken for news after
// the log has gone.
func setAsideLegacyFiles(dir string, log *slog.Logger) {
	for _, name := range []string{legacyUsageFile, legacyEpochFile} {
		path := filepath.Join(dir, name)
		if err := os.Rename(path, path+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("an old file stays", "err", err)
		}
	}
}
