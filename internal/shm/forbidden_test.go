package shm_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

func TestCreateWhereItIsForbidden(t *testing.T) {
	t.Parallel()
	err := shmtest.Forbidding(t, unix.SYS_MEMFD_CREATE, func() error {
		f, err := shm.Create("test", 4096)
		if err == nil {
			err = errors.Join(errors.New("it was made"), f.Close())
		}
		return err
	})
	if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrUnavailable) || !errors.Is(err, unix.EPERM) || e.Remedy == "" {
		t.Errorf("%v", err)
	}
}
