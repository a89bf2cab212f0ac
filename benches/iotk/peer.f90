! The tasks of `cargo xtask bench iotk` in Fortran: unformatted write and read, formatted write and list-directed
! read. Protocol: benches/common.h; the count is the number of bytes of the numbers. Tasks:
!
!   write-binary FILE COUNT     one record of COUNT doubles
!   read-binary FILE COUNT      the data record of a file written by spile
!   write-text FILE COUNT       one number per line, 17 digits
!   read-text FILE COUNT        list-directed, from a text file written by spile
!   to-text FROM TO COUNT       record to text
!   to-binary FROM TO COUNT     text to record
!   scan-tags FILE COUNT        reads all tags of a file written by spile
!
! Memory is allocated before the measurement and reused.
program peer
    use iso_fortran_env, only: int64, real64, output_unit
    implicit none
    character(len=4096) :: line, task, from, to
    real(real64), allocatable :: x(:)
    integer(int64) :: count, start, finish, rate
    integer :: status
    call system_clock(count_rate=rate)
    do
        read (*, '(a)', iostat=status) line
        if (status /= 0 .or. len_trim(line) == 0) exit
        task = field(1)
        from = field(2)
        to = field(merge(3, 2, task(1:3) == 'to-'))
        line = field(merge(4, 3, task(1:3) == 'to-'))
        read (line, *) count
        call prepare
        call system_clock(start)
        select case (task)
        case ('write-binary')
            call write_binary(to)
        case ('read-binary')
            call read_binary(from)
        case ('write-text')
            call write_text(to)
        case ('read-text')
            call read_text(from)
        case ('to-text')
            call read_binary(from)
            call write_text(to)
        case ('to-binary')
            call read_text(from)
            call write_binary(to)
        case ('scan-tags')
            call scan_tags(from)
        case default
            error stop 'unknown task'
        end select
        call system_clock(finish)
        if (task(1:5) == 'read-') call compare
        write (output_unit, '(f0.9, 1x, i0)') real(finish - start, real64) / rate, 8 * count
        flush (output_unit)
    end do

contains

    ! The n-th field of the line; a list-directed read would stop at a slash.
    function field(n)
        integer, intent(in) :: n
        character(len=4096) :: field
        integer :: k, first, last
        first = 1
        do k = 1, n
            first = first + verify(line(first:), ' ') - 1
            last = first + index(line(first:), ' ') - 2
            if (k < n) first = last + 1
        end do
        field = line(first:last)
    end function

    ! Fills x with the numbers to write, or with zeros before reading.
    subroutine prepare
        integer(int64) :: k
        if (allocated(x)) then
            if (size(x, kind=int64) /= count) deallocate (x)
        end if
        if (.not. allocated(x)) allocate (x(count))
        if (task(1:6) == 'write-') then
            do k = 1, count
                x(k) = value(k)
            end do
        else
            x = 0
        end if
    end subroutine

    ! The same values as in bench_iotk.rs: all digits, many magnitudes.
    pure function value(k)
        integer(int64), intent(in) :: k
        real(real64) :: value
        value = sin(0.37_real64 * real(k, real64)) * 10.0_real64 ** (mod(k, 41_int64) - 20)
    end function

    subroutine compare
        integer(int64) :: k
        real(real64) :: expected
        do k = 1, count, max(1_int64, count / 1000)
            expected = value(k)
            if (abs(x(k) - expected) > 1e-13_real64 * abs(expected)) error stop 'unexpected numbers'
        end do
    end subroutine

    subroutine write_binary(file)
        character(*), intent(in) :: file
        open (10, file=trim(file), form='unformatted', access='sequential', status='replace')
        write (10) 0, x
        close (10)
    end subroutine

    ! A tag is two records, the first with a nonzero header.
    subroutine read_binary(file)
        character(*), intent(in) :: file
        integer :: header
        open (10, file=trim(file), form='unformatted', access='sequential', status='old', action='read')
        do
            read (10) header
            if (header == 0) exit
            read (10) header
        end do
        backspace (10)
        read (10) header, x
        close (10)
    end subroutine

    subroutine write_text(file)
        character(*), intent(in) :: file
        open (11, file=trim(file), form='formatted', access='sequential', status='replace')
        write (11, '(es24.16e3)') x
        close (11)
    end subroutine

    subroutine read_text(file)
        character(*), intent(in) :: file
        character(len=256) :: tag
        open (11, file=trim(file), form='formatted', access='sequential', status='old', action='read')
        do
            read (11, '(a)') tag
            if (index(tag, 'type=') > 0) exit
        end do
        read (11, *) x
        close (11)
    end subroutine

    subroutine scan_tags(file)
        character(*), intent(in) :: file
        character(len=65536) :: tag
        integer :: header, second, status
        integer(int64) :: found
        found = 0
        open (10, file=trim(file), form='unformatted', access='sequential', status='old', action='read')
        do
            read (10, iostat=status) header
            if (status /= 0) exit
            if (header == 0) cycle
            read (10) second, tag(1:header/256)
            if (mod(header, 256) == 1) found = found + 1
        end do
        close (10)
        if (found < count) error stop 'missing tags'
    end subroutine
end program
