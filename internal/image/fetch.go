package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	registry "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/imageref"
)

// fetchedTag is the tag of a fetched image in its layout.
const fetchedTag = "fetched"

// fetch copies a registry's image into an empty directory, as an OCI layout, and returns
// its name there. It does not look into layers. Credentials are those of the user's
// container tools (~/.docker/config.json).
func fetch(ctx context.Context, r imageref.Reference, dir string, limits Limits) (imageref.Reference, error) {
	where, err := name.ParseReference(r.Name)
	if err != nil {
		return r, fmt.Errorf("image %s: %w: %w", r, roost.Invalid, err)
	}
	p := platform()
	m, err := remote.Image(where, remote.WithContext(ctx), remote.WithPlatform(p),
		remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("roost"))
	if err == nil {
		err = checkSizes(m, limits)
	}
	var path layout.Path
	if err == nil {
		path, err = layout.Write(dir, empty.Index)
	}
	if err == nil {
		err = path.AppendImage(m, layout.WithAnnotations(map[string]string{refNameAnnotation: fetchedTag}))
	}
	if err != nil {
		return r, fmt.Errorf("image %s: %w", r, registryError(err))
	}
	return imageref.Reference{Source: imageref.Layout, Text: r.Text, Path: dir, Tag: fetchedTag}, nil
}

// checkSizes refuses an image before its layers are fetched.
func checkSizes(m registry.Image, limits Limits) error {
	manifest, err := m.Manifest()
	if err != nil {
		return err
	}
	total := manifest.Config.Size
	for _, l := range manifest.Layers {
		if total += l.Size; l.Size < 0 || total > limits.Bytes {
			return fmt.Errorf("%w: its layers have more than %v", roost.Exhausted, roost.Bytes(limits.Bytes))
		}
	}
	return nil
}

// registryError gives the error of a registry a kind, and says what may help.
func registryError(err error) error {
	var refused *transport.Error
	var kind roost.ErrorKind
	switch {
	case errors.As(err, &kind):
		return err
	case !errors.As(err, &refused):
		return fmt.Errorf("%w: %w", roost.Unavailable, err)
	}
	switch refused.StatusCode {
	case http.StatusNotFound:
		return fmt.Errorf("%w: the registry has no such image: %w", roost.NotFound, err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: the registry does not let you have it; log in with your container tool (skopeo login, "+
			"podman login --authfile ~/.docker/config.json): %w", roost.PermissionDenied, err)
	case http.StatusTooManyRequests:
		return fmt.Errorf("%w: the registry takes no more requests for now; log in, or try again later: %w",
			roost.Unavailable, err)
	}
	return fmt.Errorf("%w: %w", roost.Unavailable, err)
}
