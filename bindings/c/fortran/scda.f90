! scda: parallel files whose bytes do not depend on the number of processes.
!
! The functions of scda.h. Files are type(c_ptr); data are passed by c_loc, sizes and counts as 64-bit
! integers, flags as logicals. After a failure the file is c_null_ptr, err is the error code, and
! scda_flast_message returns the message.
!
!   f = scda_fopen(scda_comm_mpi(MPI_COMM_WORLD), 'state.scda', 'w', 'my run', err)
!   call scda_fwrite_array(f, c_loc(field), counts, 8_int64, .false., 'field', .false., err)
!   call scda_fclose(f, err)
!
! scda_comm_mpi is in scda_mpi.c, which is compiled with mpicc. c_null_ptr as the communicator is one
! process.
module scda
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none
  private

  integer, parameter, public :: scda_userstr_length = 58
  integer, parameter, public :: scda_success = 0, scda_err_io = 1, scda_err_format = 2, &
    scda_err_corrupt = 3, scda_err_truncated = 4, scda_err_unsupported = 5, &
    scda_err_limit = 6, scda_err_argument = 7, scda_err_exists = 8

  public :: scda_comm_mpi, scda_fopen, scda_fclose
  public :: scda_fwrite_inline, scda_fwrite_block, scda_fwrite_array, scda_fwrite_varray
  public :: scda_fread_section_header, scda_fread_inline_data, scda_fread_block_data
  public :: scda_fread_array_data, scda_fread_varray_sizes, scda_fread_varray_data
  public :: scda_ferror_string, scda_flast_message

  interface
    ! Communicator of an MPI communicator (its integer handle).
    function scda_comm_mpi(mpicomm) bind(c, name='scda_comm_mpi_fortran') result(comm)
      import :: c_ptr, c_int
      integer(c_int), value :: mpicomm
      type(c_ptr) :: comm
    end function

    function c_fopen(comm, filename, mode, userstr, err) bind(c, name='scda_fopen') result(f)
      import :: c_ptr, c_char, c_int, c_signed_char
      type(c_ptr), value :: comm
      character(c_char), intent(in) :: filename(*)
      ! An integer, because some compilers do not pass a character by value as C does.
      integer(c_signed_char), value :: mode
      character(c_char), intent(inout) :: userstr(*)
      integer(c_int), intent(out) :: err
      type(c_ptr) :: f
    end function

    function c_fclose(f, err) bind(c, name='scda_fclose') result(code)
      import :: c_ptr, c_int
      type(c_ptr), value :: f
      integer(c_int), intent(out) :: err
      integer(c_int) :: code
    end function

    function c_fwrite_inline(f, dbytes, userstr, root, err) bind(c, name='scda_fwrite_inline') &
      result(g)
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: f, dbytes
      character(c_char), intent(in) :: userstr(*)
      integer(c_int), value :: root
      integer(c_int), intent(out) :: err
      type(c_ptr) :: g
    end function

    function c_fwrite_block(f, dbytes, length, userstr, root, encode, err) &
      bind(c, name='scda_fwrite_block') result(g)
      import :: c_ptr, c_char, c_int, c_int64_t
      type(c_ptr), value :: f, dbytes
      integer(c_int64_t), value :: length
      character(c_char), intent(in) :: userstr(*)
      integer(c_int), value :: root, encode
      integer(c_int), intent(out) :: err
      type(c_ptr) :: g
    end function

    function c_fwrite_array(f, dbytes, counts, length, indirect, userstr, encode, err) &
      bind(c, name='scda_fwrite_array') result(g)
      import :: c_ptr, c_char, c_int, c_int64_t
      type(c_ptr), value :: f, dbytes
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int64_t), value :: length
      character(c_char), intent(in) :: userstr(*)
      integer(c_int), value :: indirect, encode
      integer(c_int), intent(out) :: err
      type(c_ptr) :: g
    end function

    function c_fwrite_varray(f, dbytes, counts, sizes, bytes, indirect, userstr, encode, err) &
      bind(c, name='scda_fwrite_varray') result(g)
      import :: c_ptr, c_char, c_int, c_int64_t
      type(c_ptr), value :: f, dbytes
      integer(c_int64_t), intent(in) :: counts(*), sizes(*), bytes(*)
      character(c_char), intent(in) :: userstr(*)
      integer(c_int), value :: indirect, encode
      integer(c_int), intent(out) :: err
      type(c_ptr) :: g
    end function

    function c_fread_section_header(f, kind, number, length, userstr, decode, err) &
      bind(c, name='scda_fread_section_header') result(g)
      import :: c_ptr, c_char, c_int, c_int64_t
      type(c_ptr), value :: f
      character(c_char), intent(out) :: kind
      integer(c_int64_t), intent(out) :: number, length
      character(c_char), intent(inout) :: userstr(*)
      integer(c_int), intent(inout) :: decode
      integer(c_int), intent(out) :: err
      type(c_ptr) :: g
    end function

    function c_fread_inline_data(f, dbytes, root, err) bind(c, name='scda_fread_inline_data') &
      result(g)
      import :: c_ptr, c_int
      type(c_ptr), value :: f, dbytes
      integer(c_int), value :: root
      integer(c_int), intent(out) :: err
      type(c_ptr) :: g
    end function

    function c_fread_block_data(f, dbytes, length, root, err) &
      bind(c, name='scda_fread_block_data') result(g)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: f, dbytes
      integer(c_int64_t), value :: length
      integer(c_int), value :: root
      integer(c_int), intent(out) :: err
      type(c_ptr) :: g
    end function

    function c_fread_array_data(f, dbytes, counts, length, indirect, err) &
      bind(c, name='scda_fread_array_data') result(g)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: f, dbytes
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int64_t), value :: length
      integer(c_int), value :: indirect
      integer(c_int), intent(out) :: err
      type(c_ptr) :: g
    end function

    function c_fread_varray_sizes(f, sizes, counts, err) &
      bind(c, name='scda_fread_varray_sizes') result(g)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: f
      integer(c_int64_t), intent(out) :: sizes(*)
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int), intent(out) :: err
      type(c_ptr) :: g
    end function

    function c_fread_varray_data(f, dbytes, counts, sizes, bytes, indirect, err) &
      bind(c, name='scda_fread_varray_data') result(g)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: f, dbytes
      integer(c_int64_t), intent(in) :: counts(*), sizes(*), bytes(*)
      integer(c_int), value :: indirect
      integer(c_int), intent(out) :: err
      type(c_ptr) :: g
    end function

    function c_ferror_string(err, text, length) bind(c, name='scda_ferror_string') result(code)
      import :: c_char, c_int
      integer(c_int), value :: err
      character(c_char), intent(inout) :: text(*)
      integer(c_int), intent(inout) :: length
      integer(c_int) :: code
    end function

    function c_flast_message(text, length) bind(c, name='scda_flast_message') result(code)
      import :: c_char, c_int
      character(c_char), intent(inout) :: text(*)
      integer(c_int), intent(inout) :: length
      integer(c_int) :: code
    end function
  end interface

contains

  ! Opens a file for writing (mode 'w'), with a user string for its header, or for reading ('r').
  function scda_fopen(comm, filename, mode, userstr, err) result(f)
    type(c_ptr), intent(in) :: comm
    character(*), intent(in) :: filename, userstr
    character(1), intent(in) :: mode
    integer, intent(out) :: err
    type(c_ptr) :: f
    character(c_char) :: user(max(len_trim(userstr), scda_userstr_length) + 1)
    user = as_c(userstr, size(user))
    f = c_fopen(comm, as_c(filename, len_trim(filename) + 1), int(ichar(mode), c_signed_char), &
      user, err)
  end function

  subroutine scda_fclose(f, err)
    type(c_ptr), intent(inout) :: f
    integer, intent(out) :: err
    integer(c_int) :: code
    code = c_fclose(f, err)
    f = c_null_ptr
    if (code /= 0 .and. err == 0) err = scda_err_argument
  end subroutine

  subroutine scda_fwrite_inline(f, dbytes, userstr, root, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    character(*), intent(in) :: userstr
    integer, intent(in) :: root
    integer, intent(out) :: err
    f = c_fwrite_inline(f, dbytes, as_c(userstr, len_trim(userstr) + 1), root, err)
  end subroutine

  subroutine scda_fwrite_block(f, dbytes, length, userstr, root, encode, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: length
    character(*), intent(in) :: userstr
    integer, intent(in) :: root
    logical, intent(in) :: encode
    integer, intent(out) :: err
    f = c_fwrite_block(f, dbytes, length, as_c(userstr, len_trim(userstr) + 1), root, &
      merge(1, 0, encode), err)
  end subroutine

  subroutine scda_fwrite_array(f, dbytes, counts, length, indirect, userstr, encode, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: counts(:), length
    logical, intent(in) :: indirect, encode
    character(*), intent(in) :: userstr
    integer, intent(out) :: err
    f = c_fwrite_array(f, dbytes, counts, length, merge(1, 0, indirect), &
      as_c(userstr, len_trim(userstr) + 1), merge(1, 0, encode), err)
  end subroutine

  subroutine scda_fwrite_varray(f, dbytes, counts, sizes, bytes, indirect, userstr, encode, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: counts(:), sizes(:), bytes(:)
    logical, intent(in) :: indirect, encode
    character(*), intent(in) :: userstr
    integer, intent(out) :: err
    f = c_fwrite_varray(f, dbytes, counts, sizes, bytes, merge(1, 0, indirect), &
      as_c(userstr, len_trim(userstr) + 1), merge(1, 0, encode), err)
  end subroutine

  ! Sets kind to 'I', 'B', 'A' or 'V', or to a blank at the end of the file.
  subroutine scda_fread_section_header(f, kind, number, length, userstr, decode, err)
    type(c_ptr), intent(inout) :: f
    character(1), intent(out) :: kind
    integer(int64), intent(out) :: number, length
    character(*), intent(out) :: userstr
    logical, intent(inout) :: decode
    integer, intent(out) :: err
    character(c_char) :: user(scda_userstr_length + 1)
    integer(c_int) :: decode_flag
    decode_flag = merge(1, 0, decode)
    user = c_null_char
    kind = ' '
    f = c_fread_section_header(f, kind, number, length, user, decode_flag, err)
    if (kind == c_null_char) kind = ' '
    decode = decode_flag /= 0
    userstr = from_c(user)
  end subroutine

  subroutine scda_fread_inline_data(f, dbytes, root, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    integer, intent(in) :: root
    integer, intent(out) :: err
    f = c_fread_inline_data(f, dbytes, root, err)
  end subroutine

  subroutine scda_fread_block_data(f, dbytes, length, root, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: length
    integer, intent(in) :: root
    integer, intent(out) :: err
    f = c_fread_block_data(f, dbytes, length, root, err)
  end subroutine

  subroutine scda_fread_array_data(f, dbytes, counts, length, indirect, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: counts(:), length
    logical, intent(in) :: indirect
    integer, intent(out) :: err
    f = c_fread_array_data(f, dbytes, counts, length, merge(1, 0, indirect), err)
  end subroutine

  subroutine scda_fread_varray_sizes(f, sizes, counts, err)
    type(c_ptr), intent(inout) :: f
    integer(int64), intent(out) :: sizes(:)
    integer(int64), intent(in) :: counts(:)
    integer, intent(out) :: err
    f = c_fread_varray_sizes(f, sizes, counts, err)
  end subroutine

  subroutine scda_fread_varray_data(f, dbytes, counts, sizes, bytes, indirect, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: counts(:), sizes(:), bytes(:)
    logical, intent(in) :: indirect
    integer, intent(out) :: err
    f = c_fread_varray_data(f, dbytes, counts, sizes, bytes, merge(1, 0, indirect), err)
  end subroutine

  ! Description of an error code; empty for an unknown code.
  function scda_ferror_string(err) result(text)
    integer, intent(in) :: err
    character(:), allocatable :: text
    character(c_char) :: chars(512)
    integer(c_int) :: length
    length = size(chars)
    chars = c_null_char
    if (c_ferror_string(err, chars, length) /= 0) chars = c_null_char
    text = from_c(chars)
  end function

  ! Message of the last error, with file and byte offset.
  function scda_flast_message() result(text)
    character(:), allocatable :: text
    character(c_char) :: chars(1024)
    integer(c_int) :: length
    length = size(chars)
    chars = c_null_char
    if (c_flast_message(chars, length) /= 0) chars = c_null_char
    text = from_c(chars)
  end function

  ! A NUL-terminated string without trailing blanks.
  pure function as_c(text, capacity) result(chars)
    character(*), intent(in) :: text
    integer, intent(in) :: capacity
    character(c_char) :: chars(capacity)
    integer :: k
    chars = c_null_char
    do k = 1, min(len_trim(text), capacity - 1)
      chars(k) = text(k:k)
    end do
  end function

  pure function from_c(chars) result(text)
    character(c_char), intent(in) :: chars(:)
    character(:), allocatable :: text
    integer :: k
    text = ''
    do k = 1, size(chars)
      if (chars(k) == c_null_char) exit
      text = text // chars(k)
    end do
  end function
end module scda
