! Writes a field and particles that are distributed over the processes, and reads them back.
!
!   mpirun -np 3 ./fortran state.scda
!   mpirun -np 2 ./fortran state.scda restart
program checkpoint
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, real64, error_unit
  use mpi
  use scda
  implicit none

  integer(int64), parameter :: cells = 1000
  integer :: rank, ranks, q, err, ierr
  integer(int64) :: first, mine, cell, n
  integer(int64), allocatable :: counts(:), bytes(:)
  character(256) :: path

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call get_command_argument(1, path)

  ! An uneven partition: the first process has the fewest cells.
  allocate(counts(0:ranks - 1), bytes(0:ranks - 1))
  cell = 0
  do q = 0, ranks - 1
    n = cells * (q + 1) * (q + 1) / ranks / ranks
    counts(q) = n - cell
    if (q == rank) first = cell
    bytes(q) = 0
    do cell = cell, n - 1
      bytes(q) = bytes(q) + 8 * particles(cell)
    end do
    cell = n
  end do
  mine = counts(rank)

  if (command_argument_count() < 2) call save()
  call load()
  call MPI_Finalize(ierr)

contains

  pure integer(int64) function particles(cell)
    integer(int64), intent(in) :: cell
    particles = mod(cell * 7, 5_int64)
  end function

  subroutine save()
    real(real64), allocatable, target :: fields(:, :), positions(:)
    integer(int64), allocatable :: sizes(:)
    character(32), target :: step
    character(*), parameter :: text = '{"cells": 1000, "field": "2 x float64"}'
    character(len(text)), target :: about
    type(c_ptr) :: f
    integer(int64) :: k, i, n

    allocate(fields(2, mine), positions(bytes(rank) / 8), sizes(mine))
    n = 0
    do k = 1, mine
      fields(:, k) = 0.5_real64 * real(first + k - 1, real64) + [0, 1]
      sizes(k) = 8 * particles(first + k - 1)
      do i = 0, particles(first + k - 1) - 1
        n = n + 1
        positions(n) = real(first + k - 1, real64) + 0.125_real64 * real(i, real64)
      end do
    end do
    write (step, '(i31, a1)') 42, new_line('a')
    about = text

    f = scda_fopen_write(scda_comm_mpi(MPI_COMM_WORLD), path, 'checkpoint example', err)
    call scda_fwrite_inline(f, c_loc(step), 'step', 0, err)
    call scda_fwrite_block(f, c_loc(about), len(about, int64), 'about', 0, .false., err)
    call scda_fwrite_array(f, c_loc(fields), counts, 16_int64, .false., 'field', .false., err)
    call scda_fwrite_varray(f, c_loc(positions), counts, sizes, bytes, .false., 'particles', &
      .true., err)
    call scda_fclose(f, err)
    call expect(err == scda_success, scda_flast_message())
  end subroutine

  subroutine load()
    real(real64), allocatable, target :: fields(:, :), positions(:)
    integer(int64), allocatable :: sizes(:)
    character(32), target :: step
    character(scda_userstr_length) :: user
    character(1) :: kind
    logical :: decode
    type(c_ptr) :: f
    integer(int64) :: number, length, k, i, n

    allocate(fields(2, mine), positions(bytes(rank) / 8), sizes(mine))
    f = scda_fopen_read(scda_comm_mpi(MPI_COMM_WORLD), path, err)
    do while (c_associated(f))
      decode = .true.
      call scda_fread_section_header(f, kind, number, length, user, decode, err)
      select case (kind)
      case ('I')
        call scda_fread_inline_data(f, c_loc(step), 0, err)
      case ('B')
        ! Skip it.
        call scda_fread_block_data(f, c_null_ptr, length, 0, err)
      case ('A')
        call scda_fread_array_data(f, c_loc(fields), counts, length, .false., err)
      case ('V')
        call scda_fread_varray_sizes(f, sizes, counts, err)
        call scda_fread_varray_data(f, c_loc(positions), counts, sizes, bytes, .false., err)
      case default
        exit
      end select
    end do
    if (c_associated(f)) call scda_fclose(f, err)
    call expect(err == scda_success, scda_flast_message())

    n = 0
    do k = 1, mine
      call expect(all(fields(:, k) == 0.5_real64 * real(first + k - 1, real64) + [0, 1]), 'a field')
      call expect(sizes(k) == 8 * particles(first + k - 1), 'the number of particles')
      do i = 0, particles(first + k - 1) - 1
        n = n + 1
        call expect(positions(n) == real(first + k - 1, real64) + 0.125_real64 * real(i, real64), &
          'a particle')
      end do
    end do
    if (rank == 0) print '(a, i0, a)', 'restarted on ', ranks, ' processes'
  end subroutine

  subroutine expect(valid, what)
    logical, intent(in) :: valid
    character(*), intent(in) :: what
    if (valid) return
    write (error_unit, '(2a)') 'check failed: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine
end program checkpoint
