! scda: parallel files whose bytes do not depend on the number of processes.
!
! The functions of scda.h. Files are type(c_ptr); data are passed by c_loc, sizes and counts as 64-bit
! integers, flags as logicals. After a failure the file is c_null_ptr, err is the error code, which the
! following calls keep, and scda_flast_message returns the message.
!
!   f = scda_fopen_write(scda_comm_mpi(MPI_COMM_WORLD), 'state.scda', 'my run', err)
!   call scda_fwrite_array(f, c_loc(field), counts, 8_int64, .false., 'field', .false., err)
!   call scda_fclose(f, err)
!
! scda_comm_mpi is in scda_mpi.c, which is compiled with mpicc. It takes the handles of the module mpi, and
! those of mpi_f08 with the module in scda_f08.f90. c_null_ptr as the communicator is one process.
!
! Data that this process does not read are c_null_ptr. Arrays that a process may leave out are optional
! arguments. User strings end with their last character that is not blank.
module scda
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none
  private

  integer, parameter, public :: scda_userstr_length = 58
  integer, parameter, public :: scda_success = 0, scda_err_io = 1, scda_err_format = 2, &
    scda_err_corrupt = 3, scda_err_truncated = 4, scda_err_unsupported = 5, &
    scda_err_limit = 6, scda_err_argument = 7, scda_err_exists = 8

  public :: scda_comm_mpi, scda_fopen, scda_fopen_with, scda_fopen_write, scda_fopen_read, scda_fclose
  public :: scda_fwrite_inline, scda_fwrite_block, scda_fwrite_array, scda_fwrite_varray
  public :: scda_fread_section_header, scda_fread_inline_data, scda_fread_block_data
  public :: scda_fread_array_data, scda_fread_varray_sizes, scda_fread_varray_data
  public :: scda_fwrite_field, scda_fwrite_ragged_field, scda_find_field, scda_fread_field
  public :: scda_fread_field_lengths, scda_fread_ragged_field, scda_fwrite_attrs, scda_find_attrs
  public :: scda_ferror_string, scda_flast_message

  ! Options for writing.
  type, public :: scda_options
    character(20) :: vendor = ''      ! blank: spile and its version
    logical :: mime = .false.         ! MIME line breaks instead of Unix
    integer :: level = 9              ! compression level, 0 to 12
    logical :: keep_existing = .false. ! fail if the file exists
    logical :: index = .false.        ! write an index at the end, for opening large files
    logical :: checksums = .false.    ! write checksums of all sections to the index
  end type

  ! Description of a field. The shape of an element has the order of C: the last index is the fastest, which
  ! is the reverse of the shape of a Fortran array.
  type, public :: scda_field
    character(:), allocatable :: name   ! slashes separate groups
    character(:), allocatable :: type   ! in NumPy notation, such as '<f8'
    integer(int64), allocatable :: shape(:) ! not allocated: one value
    integer(int64) :: version = 0       ! 0: none; reading another version fails
    character(:), allocatable :: attrs  ! attributes as a JSON object; not allocated: none
    logical :: encode = .false.         ! compress each element when writing
  end type

  ! A field in a file.
  type, public :: scda_field_info
    character(1) :: section = ' '       ! 'A', 'V', 'B'; blank: no such field
    logical :: encoded = .false.
    integer(int64) :: number = 0        ! number of elements
    integer(int64) :: length = 0        ! bytes of an element, or of an item ('V')
    character(:), allocatable :: type
    integer(int64), allocatable :: shape(:) ! of an element, or of an item, as in scda_field
    integer(int64) :: version = 0
  end type

  type, bind(c) :: c_options
    type(c_ptr) :: vendor
    integer(c_int) :: mime, level, keep_existing, index, checksums
  end type

  type, bind(c) :: c_field
    type(c_ptr) :: name, type
    integer(c_int) :: rank
    type(c_ptr) :: shape
    integer(c_int64_t) :: version
    type(c_ptr) :: attrs
    integer(c_int) :: encode
  end type

  ! The strings and the shape of a c_field.
  type :: field_texts
    character(c_char), allocatable :: name(:), type(:), attrs(:)
    integer(c_int64_t), allocatable :: shape(:)
  end type

  integer, parameter :: shape_room = 8

  type, bind(c) :: c_field_info
    character(c_char) :: section
    integer(c_int) :: encoded
    integer(c_int64_t) :: number, length
    character(c_char) :: type(16)
    integer(c_int) :: rank
    integer(c_int64_t) :: shape(shape_room), version
  end type

  ! Communicator of an MPI communicator; info has hints for opening files. Integer handles.
  interface scda_comm_mpi
    function c_comm_mpi(mpicomm, info) bind(c, name='scda_comm_mpi_fortran') result(comm)
      import :: c_ptr, c_int
      integer(c_int), value :: mpicomm
      integer(c_int), intent(in), optional :: info
      type(c_ptr) :: comm
    end function
  end interface

  interface
    function c_fopen(comm, filename, mode, userstr, err) bind(c, name='scda_fopen') result(f)
      import :: c_ptr, c_char, c_int, c_signed_char
      type(c_ptr), value :: comm
      character(c_char), intent(in) :: filename(*)
      ! An integer, because some compilers do not pass a character by value as C does.
      integer(c_signed_char), value :: mode
      character(c_char), intent(in) :: userstr(*)
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: f
    end function

    function c_fopen_write(comm, filename, userstr, options, err) bind(c, name='scda_fopen_write') &
      result(f)
      import :: c_ptr, c_char, c_int, c_options
      type(c_ptr), value :: comm
      character(c_char), intent(in) :: filename(*), userstr(*)
      type(c_options), intent(in) :: options
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: f
    end function

    function c_fopen_read(comm, filename, userstr, err) bind(c, name='scda_fopen_read') result(f)
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: comm
      character(c_char), intent(in) :: filename(*)
      character(c_char), intent(inout) :: userstr(*)
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: f
    end function

    function c_fclose(f, err) bind(c, name='scda_fclose') result(code)
      import :: c_ptr, c_int
      type(c_ptr), value :: f
      integer(c_int), intent(inout) :: err
      integer(c_int) :: code
    end function

    function c_fwrite_inline(f, dbytes, userstr, root, err) bind(c, name='scda_fwrite_inline') &
      result(g)
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: f, dbytes
      character(c_char), intent(in) :: userstr(*)
      integer(c_int), value :: root
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_fwrite_block(f, dbytes, length, userstr, root, encode, err) &
      bind(c, name='scda_fwrite_block') result(g)
      import :: c_ptr, c_char, c_int, c_int64_t
      type(c_ptr), value :: f, dbytes
      integer(c_int64_t), value :: length
      character(c_char), intent(in) :: userstr(*)
      integer(c_int), value :: root, encode
      integer(c_int), intent(inout) :: err
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
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_fwrite_varray(f, dbytes, counts, sizes, bytes, indirect, userstr, encode, err) &
      bind(c, name='scda_fwrite_varray') result(g)
      import :: c_ptr, c_char, c_int, c_int64_t
      type(c_ptr), value :: f, dbytes
      integer(c_int64_t), intent(in) :: counts(*), sizes(*), bytes(*)
      character(c_char), intent(in) :: userstr(*)
      integer(c_int), value :: indirect, encode
      integer(c_int), intent(inout) :: err
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
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_fread_inline_data(f, dbytes, root, err) bind(c, name='scda_fread_inline_data') &
      result(g)
      import :: c_ptr, c_int
      type(c_ptr), value :: f, dbytes
      integer(c_int), value :: root
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_fread_block_data(f, dbytes, length, root, err) &
      bind(c, name='scda_fread_block_data') result(g)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: f, dbytes
      integer(c_int64_t), value :: length
      integer(c_int), value :: root
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_fread_array_data(f, dbytes, counts, length, indirect, err) &
      bind(c, name='scda_fread_array_data') result(g)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: f, dbytes
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int64_t), value :: length
      integer(c_int), value :: indirect
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_fread_varray_sizes(f, sizes, counts, err) &
      bind(c, name='scda_fread_varray_sizes') result(g)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: f
      integer(c_int64_t), intent(inout), optional :: sizes(*)
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_fread_varray_data(f, dbytes, counts, sizes, bytes, indirect, err) &
      bind(c, name='scda_fread_varray_data') result(g)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: f, dbytes
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int64_t), intent(in), optional :: sizes(*), bytes(*)
      integer(c_int), value :: indirect
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_fwrite_field(f, field, dbytes, counts, indirect, err) &
      bind(c, name='scda_fwrite_field') result(g)
      import :: c_ptr, c_int, c_int64_t, c_field
      type(c_ptr), value :: f, dbytes
      type(c_field), intent(in) :: field
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int), value :: indirect
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_fwrite_ragged_field(f, field, dbytes, counts, lengths, indirect, err) &
      bind(c, name='scda_fwrite_ragged_field') result(g)
      import :: c_ptr, c_int, c_int64_t, c_field
      type(c_ptr), value :: f, dbytes
      type(c_field), intent(in) :: field
      integer(c_int64_t), intent(in) :: counts(*), lengths(*)
      integer(c_int), value :: indirect
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_find_field(f, name, info, err) bind(c, name='scda_find_field') result(g)
      import :: c_ptr, c_char, c_int, c_field_info
      type(c_ptr), value :: f
      character(c_char), intent(in) :: name(*)
      type(c_field_info), intent(inout) :: info
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_fread_field(f, field, dbytes, counts, indirect, err) &
      bind(c, name='scda_fread_field') result(g)
      import :: c_ptr, c_int, c_int64_t, c_field
      type(c_ptr), value :: f, dbytes
      type(c_field), intent(in) :: field
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int), value :: indirect
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_fread_field_lengths(f, field, lengths, counts, err) &
      bind(c, name='scda_fread_field_lengths') result(g)
      import :: c_ptr, c_int, c_int64_t, c_field
      type(c_ptr), value :: f
      type(c_field), intent(in) :: field
      integer(c_int64_t), intent(inout), optional :: lengths(*)
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_fread_ragged_field(f, field, dbytes, counts, lengths, indirect, err) &
      bind(c, name='scda_fread_ragged_field') result(g)
      import :: c_ptr, c_int, c_int64_t, c_field
      type(c_ptr), value :: f, dbytes
      type(c_field), intent(in) :: field
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int64_t), intent(in), optional :: lengths(*)
      integer(c_int), value :: indirect
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_fwrite_attrs(f, group, attrs, err) bind(c, name='scda_fwrite_attrs') result(g)
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: f
      character(c_char), intent(in) :: group(*), attrs(*)
      integer(c_int), intent(inout) :: err
      type(c_ptr) :: g
    end function

    function c_find_attrs(f, path, text, length, err) bind(c, name='scda_find_attrs') result(g)
      import :: c_ptr, c_char, c_int, c_size_t
      type(c_ptr), value :: f
      character(c_char), intent(in) :: path(*)
      character(c_char), intent(inout) :: text(*)
      integer(c_size_t), intent(inout) :: length
      integer(c_int), intent(inout) :: err
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
  ! scda_fopen_read returns the user string.
  function scda_fopen(comm, filename, mode, userstr, err) result(f)
    type(c_ptr), intent(in) :: comm
    character(*), intent(in) :: filename, userstr
    character(1), intent(in) :: mode
    integer, intent(out) :: err
    type(c_ptr) :: f
    f = scda_fopen_with(comm, filename, mode, userstr, scda_options(), err)
  end function

  ! Opens a file like scda_fopen, with options for writing.
  function scda_fopen_with(comm, filename, mode, userstr, options, err) result(f)
    type(c_ptr), intent(in) :: comm
    character(*), intent(in) :: filename, userstr
    character(1), intent(in) :: mode
    type(scda_options), intent(in) :: options
    integer, intent(out) :: err
    type(c_ptr) :: f
    if (mode == 'r') then
      f = scda_fopen_read(comm, filename, err)
    else if (mode == 'w') then
      f = scda_fopen_write(comm, filename, userstr, err, options)
    else
      ! The library reports the invalid mode.
      err = 0
      f = c_fopen(comm, as_c(filename, len_trim(filename) + 1), &
        int(ichar(mode), c_signed_char), as_c(userstr, len_trim(userstr) + 1), err)
    end if
  end function

  ! Creates a file, which is replaced if it exists.
  function scda_fopen_write(comm, filename, userstr, err, options) result(f)
    type(c_ptr), intent(in) :: comm
    character(*), intent(in) :: filename, userstr
    integer, intent(out) :: err
    type(scda_options), intent(in), optional :: options
    type(c_ptr) :: f
    type(scda_options) :: own
    type(c_options) :: c
    character(c_char), target :: vendor(len(own%vendor) + 1)
    if (present(options)) own = options
    vendor = as_c(own%vendor, size(vendor))
    c%vendor = c_null_ptr
    if (own%vendor /= '') c%vendor = c_loc(vendor)
    c%mime = merge(1, 0, own%mime)
    c%level = own%level
    c%keep_existing = merge(1, 0, own%keep_existing)
    c%index = merge(1, 0, own%index)
    c%checksums = merge(1, 0, own%checksums)
    err = 0
    f = c_fopen_write(comm, as_c(filename, len_trim(filename) + 1), &
      as_c(userstr, len_trim(userstr) + 1), c, err)
  end function

  ! Opens a file for reading.
  function scda_fopen_read(comm, filename, err, userstr) result(f)
    type(c_ptr), intent(in) :: comm
    character(*), intent(in) :: filename
    integer, intent(out) :: err
    character(*), intent(out), optional :: userstr
    type(c_ptr) :: f
    character(c_char) :: user(scda_userstr_length + 1)
    user = c_null_char
    err = 0
    f = c_fopen_read(comm, as_c(filename, len_trim(filename) + 1), user, err)
    if (present(userstr)) userstr = from_c(user)
  end function

  subroutine scda_fclose(f, err)
    type(c_ptr), intent(inout) :: f
    integer, intent(inout) :: err
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
    integer, intent(inout) :: err
    f = c_fwrite_inline(f, dbytes, as_c(userstr, len_trim(userstr) + 1), root, err)
  end subroutine

  subroutine scda_fwrite_block(f, dbytes, length, userstr, root, encode, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: length
    character(*), intent(in) :: userstr
    integer, intent(in) :: root
    logical, intent(in) :: encode
    integer, intent(inout) :: err
    f = c_fwrite_block(f, dbytes, length, as_c(userstr, len_trim(userstr) + 1), root, &
      merge(1, 0, encode), err)
  end subroutine

  subroutine scda_fwrite_array(f, dbytes, counts, length, indirect, userstr, encode, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: counts(:), length
    logical, intent(in) :: indirect, encode
    character(*), intent(in) :: userstr
    integer, intent(inout) :: err
    f = c_fwrite_array(f, dbytes, counts, length, merge(1, 0, indirect), &
      as_c(userstr, len_trim(userstr) + 1), merge(1, 0, encode), err)
  end subroutine

  subroutine scda_fwrite_varray(f, dbytes, counts, sizes, bytes, indirect, userstr, encode, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: counts(:), sizes(:), bytes(:)
    logical, intent(in) :: indirect, encode
    character(*), intent(in) :: userstr
    integer, intent(inout) :: err
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
    integer, intent(inout) :: err
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
    integer, intent(inout) :: err
    f = c_fread_inline_data(f, dbytes, root, err)
  end subroutine

  subroutine scda_fread_block_data(f, dbytes, length, root, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: length
    integer, intent(in) :: root
    integer, intent(inout) :: err
    f = c_fread_block_data(f, dbytes, length, root, err)
  end subroutine

  subroutine scda_fread_array_data(f, dbytes, counts, length, indirect, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: counts(:), length
    logical, intent(in) :: indirect
    integer, intent(inout) :: err
    f = c_fread_array_data(f, dbytes, counts, length, merge(1, 0, indirect), err)
  end subroutine

  ! A process without sizes reads none.
  subroutine scda_fread_varray_sizes(f, sizes, counts, err)
    type(c_ptr), intent(inout) :: f
    integer(int64), intent(inout), contiguous, optional :: sizes(:)
    integer(int64), intent(in) :: counts(:)
    integer, intent(inout) :: err
    f = c_fread_varray_sizes(f, sizes, counts, err)
  end subroutine

  ! A process that passes c_null_ptr reads nothing; it may leave out sizes and bytes.
  subroutine scda_fread_varray_data(f, dbytes, counts, sizes, bytes, indirect, err)
    type(c_ptr), intent(inout) :: f
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: counts(:)
    integer(int64), intent(in), contiguous, optional :: sizes(:), bytes(:)
    logical, intent(in) :: indirect
    integer, intent(inout) :: err
    f = c_fread_varray_data(f, dbytes, counts, sizes, bytes, merge(1, 0, indirect), err)
  end subroutine

  ! Writes a field. dbytes are the elements of this process.
  subroutine scda_fwrite_field(f, field, dbytes, counts, err, indirect)
    type(c_ptr), intent(inout) :: f
    type(scda_field), intent(in) :: field
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: counts(:)
    integer, intent(inout) :: err
    logical, intent(in), optional :: indirect
    type(field_texts), target :: texts
    type(c_field) :: c
    c = field_to_c(field, texts)
    f = c_fwrite_field(f, c, dbytes, counts, flag(indirect), err)
  end subroutine

  ! Writes a field whose elements have different numbers of items; lengths are those of this process.
  subroutine scda_fwrite_ragged_field(f, field, dbytes, counts, lengths, err, indirect)
    type(c_ptr), intent(inout) :: f
    type(scda_field), intent(in) :: field
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: counts(:), lengths(:)
    integer, intent(inout) :: err
    logical, intent(in), optional :: indirect
    type(field_texts), target :: texts
    type(c_field) :: c
    c = field_to_c(field, texts)
    f = c_fwrite_ragged_field(f, c, dbytes, counts, lengths, flag(indirect), err)
  end subroutine

  ! Describes a field; info%section is blank if there is none of this name.
  subroutine scda_find_field(f, name, info, err)
    type(c_ptr), intent(inout) :: f
    character(*), intent(in) :: name
    type(scda_field_info), intent(out) :: info
    integer, intent(inout) :: err
    type(c_field_info) :: c
    c%section = c_null_char
    f = c_find_field(f, as_c(name, len_trim(name) + 1), c, err)
    info%type = ''
    allocate(info%shape(0))
    if (.not. c_associated(f) .or. c%section == c_null_char) return
    info%section = c%section
    info%encoded = c%encoded /= 0
    info%number = c%number
    info%length = c%length
    info%type = from_c(c%type)
    info%shape = c%shape(:min(c%rank, shape_room))
    info%version = c%version
  end subroutine

  ! Reads a field. Fails if type, shape or version of the file differ from field.
  subroutine scda_fread_field(f, field, dbytes, counts, err, indirect)
    type(c_ptr), intent(inout) :: f
    type(scda_field), intent(in) :: field
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: counts(:)
    integer, intent(inout) :: err
    logical, intent(in), optional :: indirect
    type(field_texts), target :: texts
    type(c_field) :: c
    c = field_to_c(field, texts)
    f = c_fread_field(f, c, dbytes, counts, flag(indirect), err)
  end subroutine

  ! Reads the numbers of items of this process's elements of a ragged field.
  subroutine scda_fread_field_lengths(f, field, lengths, counts, err)
    type(c_ptr), intent(inout) :: f
    type(scda_field), intent(in) :: field
    integer(int64), intent(inout), contiguous, optional :: lengths(:)
    integer(int64), intent(in) :: counts(:)
    integer, intent(inout) :: err
    type(field_texts), target :: texts
    type(c_field) :: c
    c = field_to_c(field, texts)
    f = c_fread_field_lengths(f, c, lengths, counts, err)
  end subroutine

  ! Reads the items of a ragged field, after scda_fread_field_lengths.
  subroutine scda_fread_ragged_field(f, field, dbytes, counts, lengths, err, indirect)
    type(c_ptr), intent(inout) :: f
    type(scda_field), intent(in) :: field
    type(c_ptr), intent(in) :: dbytes
    integer(int64), intent(in) :: counts(:)
    integer(int64), intent(in), contiguous, optional :: lengths(:)
    integer, intent(inout) :: err
    logical, intent(in), optional :: indirect
    type(field_texts), target :: texts
    type(c_field) :: c
    c = field_to_c(field, texts)
    f = c_fread_ragged_field(f, c, dbytes, counts, lengths, flag(indirect), err)
  end subroutine

  ! Writes attributes of a group, or of the file if group is empty: a JSON object.
  subroutine scda_fwrite_attrs(f, group, attrs, err)
    type(c_ptr), intent(inout) :: f
    character(*), intent(in) :: group, attrs
    integer, intent(inout) :: err
    f = c_fwrite_attrs(f, as_c(group, len_trim(group) + 1), as_c(attrs, len_trim(attrs) + 1), err)
  end subroutine

  ! Attributes of a group, a field, or of the file ('') as a JSON object.
  subroutine scda_find_attrs(f, path, attrs, err)
    type(c_ptr), intent(inout) :: f
    character(*), intent(in) :: path
    character(:), allocatable, intent(out) :: attrs
    integer, intent(inout) :: err
    character(c_char), allocatable :: chars(:)
    integer(c_size_t) :: length
    allocate(chars(1024))
    do
      chars = c_null_char
      length = size(chars)
      f = c_find_attrs(f, as_c(path, len_trim(path) + 1), chars, length, err)
      if (.not. c_associated(f) .or. length < size(chars)) exit
      deallocate(chars)
      allocate(chars(length + 1))
    end do
    attrs = ''
    if (c_associated(f)) attrs = from_c(chars)
  end subroutine

  ! The description of a field for C; texts keeps its strings.
  function field_to_c(field, texts) result(c)
    type(scda_field), intent(in) :: field
    type(field_texts), target, intent(inout) :: texts
    type(c_field) :: c
    c%name = c_null_ptr
    c%type = c_null_ptr
    c%shape = c_null_ptr
    c%attrs = c_null_ptr
    c%rank = 0
    if (allocated(field%name)) then
      texts%name = as_c(field%name, len_trim(field%name) + 1)
      c%name = c_loc(texts%name)
    end if
    if (allocated(field%type)) then
      texts%type = as_c(field%type, len_trim(field%type) + 1)
      c%type = c_loc(texts%type)
    end if
    if (allocated(field%attrs)) then
      texts%attrs = as_c(field%attrs, len_trim(field%attrs) + 1)
      c%attrs = c_loc(texts%attrs)
    end if
    if (allocated(field%shape)) then
      texts%shape = field%shape
      c%rank = size(field%shape)
      if (c%rank > 0) c%shape = c_loc(texts%shape)
    end if
    c%version = field%version
    c%encode = merge(1, 0, field%encode)
  end function

  pure integer(c_int) function flag(value)
    logical, intent(in), optional :: value
    flag = 0
    if (present(value)) flag = merge(1, 0, value)
  end function

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
