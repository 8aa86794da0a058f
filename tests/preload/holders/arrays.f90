! Arrays that were allocated, in local variables of run(), below main() of other_language.c.
integer(c_int) function run() bind(c)
  use iso_c_binding, only: c_int, c_ptr, c_loc
  interface
    integer(c_int) function wait_for_word(kept) bind(c)
      import c_int, c_ptr
      type(c_ptr), value :: kept
    end function
  end interface
  real(4), allocatable, target :: field(:)
  real(8), pointer :: grid(:, :)
  integer :: error
  allocate(field(300000), stat=error)
  field = 1
  allocate(grid(300, 700), stat=error)
  grid = 2
  run = wait_for_word(c_loc(field)) + int(grid(2, 2)) - 2
end function
