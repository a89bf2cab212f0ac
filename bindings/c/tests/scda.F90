! Tests the Fortran module: `scda FOLDER` prints "ok" if all checks pass, and writes FOLDER/fields, which has the bytes
! of `fields-0` of scda.c. WITH_MPI: the module mpi; WITH_F08: mpi_f08; neither: one process.
program test_scda
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, error_unit
#if defined(WITH_F08)
  use mpi_f08
  use scda_f08
#elif defined(WITH_MPI)
  use mpi
#endif
  use scda
  implicit none

  integer(int64), parameter :: elements = 40
  integer :: rank = 0, ranks = 1, err
  integer(int64) :: first
  integer(int64), allocatable :: counts(:)
  character(512) :: folder, path
  type(c_ptr) :: f
#if defined(WITH_F08)
  type(MPI_Info) :: info
#elif defined(WITH_MPI)
  integer :: info
#endif
#if defined(WITH_F08) || defined(WITH_MPI)
  integer :: ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, 'striping_factor', '2', ierr)
#endif
  call get_command_argument(1, folder)
  path = trim(folder) // '/fields'
  allocate(counts(0:ranks - 1))
  counts = 0
  counts(ranks - 1) = elements
  if (ranks > 2) then
    counts(1) = 2
    counts(ranks - 1) = elements - 2
  end if
  first = merge(2, 0, rank == ranks - 1 .and. ranks > 2)
  call save()
  call load()
  call fail()
#if defined(WITH_F08) || defined(WITH_MPI)
  call MPI_Info_free(info, ierr)
  call MPI_Finalize(ierr)
#endif
  if (rank == 0) print '(a)', 'ok'

contains

  function comm() result(c)
    type(c_ptr) :: c
#if defined(WITH_F08) || defined(WITH_MPI)
    c = scda_comm_mpi(MPI_COMM_WORLD, info)
#else
    c = c_null_ptr
#endif
  end function

  subroutine descriptions(pair, list)
    type(scda_field), intent(out) :: pair, list
    pair%name = 'mesh/pair'
    pair%type = '<u4'
    pair%shape = [2_int64]
    pair%version = 2
    pair%attrs = '{"units":"m"}'
    list%name = 'mesh/list'
    list%type = '<u4'
    list%encode = .true.
  end subroutine

  subroutine save()
    type(scda_field) :: pair, list
    type(scda_options) :: options
    integer(int32), target :: pairs(2, elements), items(3 * elements)
    integer(int64) :: lengths(elements), k, mine
    integer :: n, i
    mine = counts(rank)
    n = 0
    do k = 1, mine
      pairs(:, k) = int(first + k - 1, int32) * [1, 7]
      lengths(k) = mod(first + k - 1, 4_int64)
      do i = 0, int(lengths(k)) - 1
        n = n + 1
        items(n) = 100 * int(first + k - 1, int32) + i
      end do
    end do
    call descriptions(pair, list)
    options%vendor = 'scda.c'
    options%index = .true.
    options%checksums = .true.
    f = scda_fopen_with(comm(), path, 'w', 'fields', options, err)
    call scda_fwrite_attrs(f, '', '{"name":"fields","version":1}', err)
    call scda_fwrite_field(f, pair, c_loc(pairs), counts, err)
    call scda_fwrite_ragged_field(f, list, c_loc(items), counts, lengths(:mine), err)
    call scda_fclose(f, err)
    call expect(err == scda_success, 'write')
  end subroutine

  subroutine load()
    type(scda_field) :: pair, list
    type(scda_field_info) :: found
    integer(int32), target :: pairs(2, elements), items(3 * elements)
    integer(int64) :: lengths(elements), k, mine, number, length
    integer :: n, i
    character(1) :: kind
    character(scda_userstr_length) :: user
    character(:), allocatable :: attrs
    logical :: decode
    mine = counts(rank)
    call descriptions(pair, list)
    f = scda_fopen_read(comm(), path, err, user)
    call expect(err == 0 .and. user == 'fields', 'user string')
    call scda_find_field(f, 'mesh/pair', found, err)
    call expect(found%section == 'A' .and. found%number == elements .and. found%length == 8 &
      .and. found%type == '<u4' .and. found%version == 2 .and. .not. found%encoded, 'field')
    call expect(size(found%shape) == 1 .and. all(found%shape == 2), 'shape')
    call scda_find_field(f, 'none', found, err)
    call expect(found%section == ' ' .and. err == 0, 'no field')
    call scda_find_attrs(f, '', attrs, err)
    call expect(attrs == '{"name":"fields","version":1}', 'attributes')
    lengths = -1
    call scda_fread_field_lengths(f, list, lengths(:mine), counts, err)
    call scda_fread_ragged_field(f, list, c_loc(items), counts, lengths(:mine), err)
    call scda_fread_field(f, pair, c_loc(pairs), counts, err)
    call expect(err == 0, 'read')
    n = 0
    do k = 1, mine
      call expect(all(pairs(:, k) == int(first + k - 1, int32) * [1, 7]), 'pair')
      call expect(lengths(k) == mod(first + k - 1, 4_int64), 'length')
      do i = 0, int(lengths(k)) - 1
        n = n + 1
        call expect(items(n) == 100 * int(first + k - 1, int32) + i, 'item')
      end do
    end do
    ! Without data and lengths nothing is read.
    call scda_fread_field_lengths(f, list, counts=counts, err=err)
    call scda_fread_ragged_field(f, list, c_null_ptr, counts, err=err)
    call scda_fclose(f, err)
    call expect(err == 0, 'close')
    ! The native functions; sizes are optional.
    f = scda_fopen(comm(), path, 'r', '', err)
    n = 0
    do
      decode = .true.
      call scda_fread_section_header(f, kind, number, length, user, decode, err)
      if (kind == ' ') exit
      n = n + 1
      if (kind == 'I') call scda_fread_inline_data(f, c_null_ptr, 0, err)
      if (kind == 'B') call scda_fread_block_data(f, c_null_ptr, length, 0, err)
      if (kind == 'A') call scda_fread_array_data(f, c_null_ptr, one_rank(number), length, .false., err)
      if (kind == 'V') then
        call scda_fread_varray_sizes(f, counts=one_rank(number), err=err)
        call scda_fread_varray_data(f, c_null_ptr, one_rank(number), indirect=.false., err=err)
      end if
      call expect(c_associated(f), 'section')
    end do
    call expect(n == 7, 'sections')
    call scda_fclose(f, err)
  end subroutine

  function one_rank(number) result(all)
    integer(int64), intent(in) :: number
    integer(int64) :: all(0:ranks - 1)
    all = 0
    all(ranks - 1) = number
  end function

  ! The error of the first call that fails is kept.
  subroutine fail()
    character(32), target :: text
    text = ' '
    f = scda_fopen_read(comm(), trim(path) // '-none', err)
    call scda_fread_inline_data(f, c_loc(text), 0, err)
    call scda_fclose(f, err)
    call expect(err == scda_err_io .and. len(scda_flast_message()) > 0, 'first error')
    f = scda_fopen(comm(), path, 'a', '', err)
    call expect(err == scda_err_argument .and. .not. c_associated(f), 'mode')
    f = scda_fopen_write(comm(), trim(path) // '-never', repeat('x', 70), err)
    call expect(err == scda_err_argument, 'long user string')
    f = scda_fopen_write(comm(), path, '', err, scda_options(keep_existing=.true.))
    call expect(err == scda_err_exists, 'existing file')
  end subroutine

  subroutine expect(valid, what)
    logical, intent(in) :: valid
    character(*), intent(in) :: what
    if (valid) return
    write (error_unit, '(a, i0, 5a)') 'rank ', rank, ': ', what, ': ', scda_flast_message()
#if defined(WITH_F08) || defined(WITH_MPI)
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
#endif
    stop 1
  end subroutine
end program test_scda
